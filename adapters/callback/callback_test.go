package callback_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/callback"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/internal/idle"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
	"go.uber.org/goleak"
)

var bg = context.Background()

func TestMain(m *testing.M) {
	abandoned := goleak.IgnoreAnyFunction("github.com/braidgo/braid/adapters/callback_test.waiting.func1") // ErrThread
	schedtest.Main(m, abandoned)
}

// A gui stands for a foreign event loop: it has one thread, and a bounded queue, so that posting may block.
type gui struct {
	queue   chan func()
	stopped chan struct{}
	steps   atomic.Int64
}

func newGUI(size int, locked bool) *gui {
	g := &gui{queue: make(chan func(), size), stopped: make(chan struct{})}
	go func() {
		if locked {
			runtime.LockOSThread()
		}
		for f := range g.queue {
			g.steps.Add(1)
			f()
		}
		close(g.stopped)
	}()
	return g
}

func (g *gui) Execute(f func()) error { g.queue <- f; return nil }

func (g *gui) stop() {
	close(g.queue)
	<-g.stopped
}

func openOn(t testing.TB, exec suspend.Executor, o callback.Options, stop func()) (*callback.Loop, func()) {
	l := callback.New(exec, o)
	return l, func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		stop()
	}
}

// inline runs a callback in the call that posts it.
type inline struct{ mu sync.Mutex }

func (i *inline) Execute(f func()) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	f()
	return nil
}

// overloaded refuses eight of its first twelve calls.
type overloaded struct {
	*gui
	n atomic.Int64
}

func (o *overloaded) Execute(f func()) error {
	if o.n.Add(1)%3 != 0 && o.n.Load() < 12 {
		return errors.New("queue full")
	}
	return o.gui.Execute(f)
}

func TestConformance(t *testing.T) {
	for name, open := range map[string]func(t testing.TB, o callback.Options) (*callback.Loop, func()){
		"bounded queue": func(t testing.TB, o callback.Options) (*callback.Loop, func()) {
			g := newGUI(1, false)
			return openOn(t, g, o, g.stop)
		},
		"locked thread": func(t testing.TB, o callback.Options) (*callback.Loop, func()) {
			g := newGUI(16, true)
			return openOn(t, g, o, g.stop)
		},
		"pool": func(t testing.TB, o callback.Options) (*callback.Loop, func()) {
			p := workstealing.New(workstealing.Options{Workers: 2})
			o.Direct = true
			return openOn(t, p, o, func() { _ = p.Close() })
		},
		"inline": func(t testing.TB, o callback.Options) (*callback.Loop, func()) {
			return openOn(t, &inline{}, o, func() {})
		},
		"overloaded": func(t testing.TB, o callback.Options) (*callback.Loop, func()) {
			g := newGUI(16, false)
			return openOn(t, &overloaded{gui: g}, o, g.stop)
		},
	} {
		t.Run(name, func(t *testing.T) {
			suspendtest.Scheduler(t, func(t testing.TB) (suspend.Spawner, func()) { return open(t, callback.Options{}) },
				suspendtest.Options{FIFO: true, Panics: func(t testing.TB, onPanic func(any, []byte)) (suspend.Spawner, func()) {
					return open(t, callback.Options{OnPanic: onPanic})
				}})
			suspendtest.Executor(t, func(t testing.TB) (suspend.Executor, func()) { return open(t, callback.Options{}) }, suspendtest.Options{FIFO: true})
		})
	}
}

// Between two steps the loop does its own work, however many tasks are runnable.
func TestOneStepAtATime(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	g := newGUI(1, false)
	l := callback.New(g, callback.Options{})
	before := g.steps.Load()
	schedtest.Run(t, l, func() {
		for range 100 {
			suspend.Yield()
		}
	})
	_ = l.Close()
	if n := g.steps.Load() - before; n < 100 {
		t.Errorf("%d steps of the loop for 100 of the task", n)
	}
	g.stop()
}

// The Loop requests a step when its queue becomes non-empty, not for each task.
func TestOneRequestForEachEdge(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	g := newGUI(1, false)
	l := callback.New(g, callback.Options{})
	gate := make(chan struct{})
	_ = g.Execute(func() { <-gate }) // keeps the thread busy
	for range 1000 {
		_ = l.Go(func() {})
	}
	if n := runtime.NumGoroutine(); n > 100 {
		t.Errorf("%d goroutines wait to post", n)
	}
	close(gate)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := l.Go(func() {}); !errors.Is(err, suspend.ErrClosed) {
		t.Errorf("Go = %v", err)
	}
	g.stop()
}

func TestCloseInATaskPanics(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	g := newGUI(1, false)
	l := callback.New(g, callback.Options{})
	for _, on := range []suspend.Spawner{l, idle.New(l, nil)} { // in a task of a group, the Close would hang instead
		schedtest.Run(t, on, func() {
			defer func() {
				if v := recover(); v != "callback: Close called from a task of the loop" {
					t.Errorf("panic %v", v)
				}
			}()
			_ = l.Close()
		})
	}
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Error(err)
	}
	g.stop()
}

// The thread continues to run while its tasks and continuations wait for a promise of a pool and for a mutex that a goroutine
// holds.
func TestNeverBlocksTheThread(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	g := newGUI(4, true)
	l := callback.New(g, callback.Options{})
	pool := workstealing.New(workstealing.Options{})
	var lock mutex.Mutex
	lock.Lock()
	gate := promise.New[struct{}]()
	answer := promise.Go(bg, pool, func(ctx context.Context) (int, error) { _, err := gate.Await(ctx); return 42, err })

	got := make(chan int, 2)
	_ = l.Go(func() { // a task
		lock.Lock()
		defer lock.Unlock()
		v, _ := answer.Await(bg)
		got <- v
	})
	suspend.Then(bg, answer.AwaitOp(), l, func(v int, err error) { got <- v }) // a continuation
	alive := make(chan struct{})
	for range 10 { // both wait, and the thread runs other functions
		_ = g.Execute(func() { alive <- struct{}{} })
		<-alive
	}
	lock.Unlock()
	_ = gate.Fill(struct{}{})
	if a, b := <-got, <-got; a != 42 || b != 42 {
		t.Errorf("got %d and %d", a, b)
	}
	if err := errors.Join(l.Close(), pool.Close()); err != nil {
		t.Error(err)
	}
	g.stop()
}

func TestStallAfter(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	g := newGUI(1, false)
	report := make(chan []byte, 1)
	l := callback.New(g, callback.Options{StallAfter: time.Millisecond, OnStall: func(stack []byte) { report <- stack }})
	schedtest.Run(t, l, func() { <-report })
	_ = l.Close()
	g.stop()
}
