package callback_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/callback"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
)

// Once an ending executor is over, it refuses functions with the error refusal, or drops them if refusal is nil.
type ending struct {
	*gui
	over    atomic.Bool
	refusal error
}

func (e *ending) Execute(f func()) error {
	if e.over.Load() {
		return e.refusal
	}
	return e.gui.Execute(f)
}

func TestEndingConformance(t *testing.T) {
	suspendtest.Ending(t, func(testing.TB) (suspend.Spawner, func(), func()) {
		x := &ending{gui: newGUI(16, false), refusal: suspend.ErrClosed}
		l := callback.New(x, callback.Options{})
		return l, func() { x.over.Store(true) }, func() { _ = l.Close(); x.stop() }
	})
}

// waiting starts a task that waits for the end of ctx. The task fills the promise when it ends.
func waiting(t *testing.T, l *callback.Loop, ctx context.Context) (cleaned *promise.Promise[struct{}]) {
	t.Helper()
	cleaned = promise.New[struct{}]()
	begun := make(chan struct{})
	if err := l.Go(func() {
		close(begun)
		_ = suspend.Sleep(ctx, time.Hour)
		suspend.Yield()
		_ = cleaned.Fill(struct{}{})
	}); err != nil {
		t.Fatal(err)
	}
	<-begun
	return cleaned
}

// A Close returns an error if the executor ended before it. Otherwise it would hang.
func TestExecutorEndsFirst(t *testing.T) {
	full := errors.New("queue full")
	for name, test := range map[string]struct {
		locked  bool
		refusal error
		close   error
	}{
		"and says so":               {false, suspend.ErrClosed, nil},
		"and says something else":   {false, full, nil},
		"and its thread was locked": {true, suspend.ErrClosed, callback.ErrThread},
		"and its thread was locked, and it says something else": {true, full, callback.ErrThread},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := &ending{gui: newGUI(16, test.locked), refusal: test.refusal}
			l := callback.New(x, callback.Options{})
			ctx, cancel := context.WithCancel(bg)
			cleaned := waiting(t, l, ctx)
			x.over.Store(true)
			cancel()
			if err := l.Close(); err != test.close {
				t.Errorf("Close = %v, want %v", err, test.close)
			}
			if _, ok, _ := cleaned.Try(); ok != (test.close == nil) {
				t.Errorf("the task has ended: %v", ok)
			}
			if err := l.Close(); err != test.close {
				t.Errorf("the second Close = %v", err)
			}
			x.stop()
		})
	}
}

// The executor drops functions. The Loop ends after Abandon.
func TestAbandon(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	x := &ending{gui: newGUI(16, false)}
	l := callback.New(x, callback.Options{})
	ctx, cancel := context.WithCancel(bg)
	cleaned := waiting(t, l, ctx)
	x.over.Store(true)
	cancel()
	soon, stop := context.WithTimeout(bg, time.Millisecond)
	defer stop()
	if err := l.Shutdown(soon); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown = %v", err)
	}
	if _, ok, _ := cleaned.Try(); ok {
		t.Error("the Shutdown has abandoned the executor")
	}
	l.Abandon()
	l.Abandon()
	if err := l.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	if _, ok, _ := cleaned.Try(); !ok {
		t.Error("the task has not ended")
	}
	x.stop()
}

// A Shutdown whose context ends leaves the tasks on the executor: no task is lost, and none runs in parallel with the executor's
// other work.
func TestShutdownLeavesTasksOnTheExecutor(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	for _, locked := range []bool{false, true} {
		g := newGUI(16, locked)
		l := callback.New(g, callback.Options{})
		goOn, wentOn := promise.New[int](), make(chan struct{})
		begun := make(chan struct{})
		require.NoError(t, l.Go(func() {
			close(begun)
			_, _ = goOn.Await(bg)
			close(wentOn)
		}))
		<-begun
		over, cancel := context.WithCancel(bg)
		cancel()
		require.ErrorIs(t, l.Shutdown(over), context.Canceled)
		beside := make(chan bool, 1)
		require.NoError(t, g.Execute(func() {
			goOn.Fill(1)
			select {
			case <-wentOn:
				beside <- true
			case <-time.After(20 * time.Millisecond):
				beside <- false
			}
		}))
		require.False(t, <-beside, "the task runs in parallel with the executor's own work")
		require.NoError(t, l.Close())
		<-wentOn
		require.NoError(t, l.Shutdown(over), "nothing is left")
		g.stop()
	}
}

// An abandoned executor may still run. Each step runs once, on the executor or on a goroutine, and two steps never run at a time.
func TestAbandonedAlive(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	for range 200 {
		g := newGUI(16, false)
		l := callback.New(g, callback.Options{})
		const tasks, rounds = 4, 20
		counted := 0 // one step at a time increments it, or the race detector complains
		for range tasks {
			_ = l.Go(func() {
				for range rounds {
					counted++
					suspend.Yield()
				}
			})
		}
		l.Abandon()
		if err := l.Close(); err != nil || counted != tasks*rounds {
			t.Fatalf("%v, %d", err, counted)
		}
		_ = g.Execute(runtime.Goexit) // the executor may still have a request for a step
	}
}

// An executor begins to run only after it was abandoned. It must run nothing on its locked thread: the runtime ends the process
// if a locked thread resumes a coroutine that another goroutine has created.
func TestAbandonedBeforeItBegan(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	for range 50 {
		var posted []func()
		l := callback.New(executor(func(f func()) { posted = append(posted, f) }), callback.Options{Direct: true})
		begun, stop := make(chan struct{}), new(atomic.Bool)
		_ = l.Go(func() {
			close(begun)
			for !stop.Load() {
				suspend.Yield()
			}
		})
		l.Abandon()
		<-begun // now the task runs on a goroutine
		ran := make(chan struct{})
		go func() {
			defer close(ran)
			runtime.LockOSThread()
			for _, f := range posted {
				f()
			}
		}()
		<-ran
		stop.Store(true)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// An executor is a function that runs or queues another function.
type executor func(f func())

func (x executor) Execute(f func()) error { x(f); return nil }

// If no task is left when the executor ends, Close returns no error.
func TestThreadEndsAfterTheLastTask(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	x := &ending{gui: newGUI(16, true), refusal: suspend.ErrClosed}
	l := callback.New(x, callback.Options{})
	if err := l.Go(runtime.Goexit); err != nil { // the Goexit leaves no coroutine behind
		t.Fatal(err)
	}
	schedtest.Eventually(t, "the task has ended", func() bool { return l.Stats().Live == 0 })
	x.over.Store(true)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	x.stop()
}

// When the executor has ended, Go returns an error. Otherwise its task would never run.
func TestGoAfterTheThreadHasEnded(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	x := &ending{gui: newGUI(16, true), refusal: suspend.ErrClosed}
	l := callback.New(x, callback.Options{})
	ctx, cancel := context.WithCancel(bg)
	waiting(t, l, ctx)
	x.over.Store(true)
	cancel()
	schedtest.Eventually(t, "Go refuses", func() bool { return errors.Is(l.Go(func() {}), suspend.ErrClosed) })
	if err := l.Close(); err != callback.ErrThread {
		t.Errorf("Close = %v", err)
	}
	x.stop()
}

// goroutine returns an identity of the calling goroutine, as a toolkit would get it.
func goroutine() string {
	var buf [64]byte
	id, _, _ := strings.Cut(string(buf[:runtime.Stack(buf[:], false)]), " [")
	return id
}

// OnExecutor runs a function on the thread's own goroutine, because a toolkit that compares goroutines refuses every call from a
// task.
func TestOnExecutor(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	for _, direct := range []bool{false, true} {
		g := newGUI(16, true)
		l := callback.New(g, callback.Options{Direct: direct})
		main := make(chan string, 1)
		_ = g.Execute(func() { main <- goroutine() })
		id := <-main
		on := func(what string) {
			got := ""
			if err := l.OnExecutor(bg, func() { got = goroutine() }); err != nil || got != id {
				t.Errorf("%s: %v, on %s and not on %s", what, err, got, id)
			}
		}
		schedtest.Run(t, l, func() {
			if goroutine() == id {
				t.Error("uncovered: tasks run on the executor's own goroutine")
			}
			on("a task")
			func() {
				defer func() {
					if v := recover(); v != "oops" {
						t.Errorf("panic %v", v)
					}
				}()
				_ = l.OnExecutor(bg, func() { panic("oops") })
			}()
			on("after a panic")
		})
		on("a goroutine")
		_ = l.Close()
		g.stop()
	}
}

func TestOnExecutorFails(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	x := &ending{gui: newGUI(16, false), refusal: suspend.ErrClosed}
	l := callback.New(x, callback.Options{})
	never := func() { t.Error("ran") }
	ctx, cancel := context.WithCancel(bg)
	busy, free := make(chan struct{}), make(chan struct{})
	_ = x.Execute(func() { close(busy); <-free })
	<-busy
	waits := make(chan error, 1)
	go func() { waits <- l.OnExecutor(ctx, never) }()
	cancel()
	if err := <-waits; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before it began: %v", err)
	}
	inner, end := context.WithCancel(bg)
	defer end()
	schedtest.Panics(t, "moody", func() { _ = l.OnExecutor(&schedtest.Moody{Context: inner, Panic: "moody"}, never) }) // never must not run after its caller has left
	ctx, cancel = context.WithCancel(bg)
	ran := false
	go func() { waits <- l.OnExecutor(ctx, func() { cancel(); ran = true }) }()
	close(free)
	if err := <-waits; err != nil || !ran {
		t.Errorf("cancelled after it had begun: %v, %v", err, ran)
	}
	if err := l.OnExecutor(ctx, never); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled already: %v", err)
	}
	called := make(chan struct{})
	_ = l.Execute(func() {
		defer close(called)
		schedtest.Panics(t, "suspend: suspending is forbidden here (in a callback, or under Bind(nil))", func() { _ = l.OnExecutor(bg, never) })
	})
	<-called
	x.over.Store(true)
	if err := l.OnExecutor(bg, never); !errors.Is(err, suspend.ErrClosed) {
		t.Errorf("refused: %v", err)
	}
	_ = l.Close()
	x.stop()
}

// If an executor runs a function twice, the second run does nothing, even while the first is still running.
func TestOnExecutorRunsOnce(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	var again func()
	l := callback.New(executor(func(f func()) { again = f; go f() }), callback.Options{})
	runs := 0
	if err := l.OnExecutor(bg, func() {
		if runs++; runs == 1 {
			again()
		}
	}); err != nil || runs != 1 {
		t.Errorf("%d runs, %v", runs, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
