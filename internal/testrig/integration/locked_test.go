package integration_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/limited"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/testrig/ccall"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
)

// A locking locks the goroutine's thread while body runs.
var lockings = map[string]func(body func()){
	"LockOSThread": func(body func()) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		body()
	},
	"LockOSThread, twice": func(body func()) {
		runtime.LockOSThread()
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer runtime.UnlockOSThread()
		body()
	},
	"C": func(body func()) {
		if ccall.Call != nil {
			ccall.Call(body)
		}
	},
}

// onEveryKind runs body on each kind of scheduler. It includes a pool of one worker and a Loop without hand-overs, where a task
// that blocks its scheduler would make the test hang.
func onEveryKind(t *testing.T, body func(t *testing.T, s suspend.Spawner)) {
	schedtest.Each(t, body)
	for name, open := range map[string]func() (suspend.Spawner, func() error){
		"limited": func() (suspend.Spawner, func() error) { s := limited.New(1, limited.Options{}); return s, s.Close },
		"one worker": func() (suspend.Spawner, func() error) {
			p := workstealing.New(workstealing.Options{Workers: 1})
			return p, p.Close
		},
		"no hand-over": func() (suspend.Spawner, func() error) {
			l, err := eventloop.New(eventloop.Options{HandOver: -1})
			require.NoError(t, err)
			return l, l.Close
		},
		"hasty": func() (suspend.Spawner, func() error) {
			l, err := eventloop.New(eventloop.Options{HandOver: time.Millisecond})
			require.NoError(t, err)
			return l, l.Close
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer schedtest.Within(t, schedtest.Deadline)()
			s, closeAll := open()
			defer func() { require.NoError(t, closeAll()) }()
			body(t, s)
		})
	}
}

// A task waits, yields and joins while its thread is locked. Only this task waits: other tasks of its scheduler continue, and
// resume it. Because a locked goroutine cannot switch to another coroutine, the runtime would end the process if the task tried.
func TestATaskThatLocksItsThread(t *testing.T) {
	for name, locked := range lockings {
		t.Run(name, func(t *testing.T) {
			onEveryKind(t, func(t *testing.T, s suspend.Spawner) {
				const tasks, turns = 8, 20
				to, from := chanx.New[int](0), chanx.New[int](0)
				var sum, others atomic.Int64
				over := latch.New(2*tasks + 1)
				for i := range tasks {
					require.NoError(t, s.Go(func() {
						defer over.CountDown()
						for k := range turns {
							locked(func() {
								_ = to.Send(bg, i*turns+k)
								suspend.Yield()
								v, _ := from.Recv(bg)
								sum.Add(int64(v))
								if k%7 == 0 {
									time.Sleep(2 * time.Millisecond) // a native wait, after which a Loop has handed over its reactor
								}
								_ = suspend.Sleep(bg, time.Microsecond)
							})
						}
					}))
					require.NoError(t, s.Go(func() {
						defer over.CountDown()
						for range turns {
							v, _ := to.Recv(bg)
							_ = from.Send(bg, v)
						}
					}))
				}
				require.NoError(t, s.Go(func() {
					defer over.CountDown()
					for others.Load() < 1000 {
						others.Add(1)
						suspend.Yield()
					}
				}))
				require.NoError(t, over.Wait(bg))
				if ccall.Call != nil || name != "C" {
					require.EqualValues(t, tasks*turns*(tasks*turns-1)/2, sum.Load())
				}
			})
		})
	}
}

// A task ends with its thread locked, by a return or an exit. No other task ends, and none runs on this thread later.
func TestATaskThatEndsWithItsThreadLocked(t *testing.T) {
	for name, end := range map[string]func(){"return": func() {}, "exit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			onEveryKind(t, func(t *testing.T, s suspend.Spawner) {
				var all sync.WaitGroup
				for i := range 40 {
					all.Add(1)
					require.NoError(t, s.Go(func() {
						defer all.Done()
						if i%10 == 3 {
							runtime.LockOSThread()
							end()
							return
						}
						suspend.Yield()
					}))
				}
				if e, ok := s.(suspend.Executor); ok {
					all.Add(2)
					require.NoError(t, e.Execute(func() { defer all.Done(); runtime.LockOSThread() }))
					require.NoError(t, e.Execute(func() { defer all.Done(); require.False(t, lockedToThread(), "a callback runs on the locked thread") }))
				}
				all.Wait()
			})
		})
	}
}

// lockedToThread reports whether the stack trace of the caller says that its thread is locked.
func lockedToThread() bool {
	buf := make([]byte, 1<<12)
	head, _, _ := strings.Cut(string(buf[:runtime.Stack(buf, false)]), "\n")
	return strings.Contains(head, "locked to thread")
}

// A task that ends with its thread locked keeps the thread for ever. Its scheduler reports this.
func TestAThreadThatStaysIsReported(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	reports := make(chan string, 9)
	s := fifo.New(fifo.Options{OnStall: func(text []byte) { reports <- string(text) }})
	require.NoError(t, s.Run(bg, func(context.Context) error {
		for range 2 {
			_ = suspend.Here().Go(func() { runtime.LockOSThread() })
		}
		return nil
	}))
	require.Contains(t, <-reports, "a task has ended with its thread locked")
	select {
	case text := <-reports:
		t.Error("a second report:", text)
	case <-time.After(20 * time.Millisecond):
	}
}

// A task that is suspended with its thread locked blocks natively on its goroutine. The watch must not report it as the running
// task.
func TestALockedTaskThatIsSuspendedIsNoStall(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	var m mvar.MVar[int]
	reports := make(chan string, 99)
	s := fifo.New(fifo.Options{StallAfter: 10 * time.Millisecond, OnStall: func(text []byte) { reports <- string(text) }})
	require.NoError(t, s.Run(bg, func(ctx context.Context) error {
		_ = suspend.Here().Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			suspendedWhileLocked(ctx, &m)
		})
		suspend.Yield()
		holdsTheScheduler(reports)
		return m.Put(ctx, 1)
	}))
}

func suspendedWhileLocked(ctx context.Context, m *mvar.MVar[int]) { _, _ = m.Take(ctx) }

func holdsTheScheduler(reports chan string) {
	text := <-reports
	if !strings.Contains(text, "holdsTheScheduler") || strings.Contains(text, "suspendedWhileLocked") {
		panic(text)
	}
}

// In a simulation, too, a locked task waits without blocking others, and a crash ends it.
func TestALockedTaskOfANode(t *testing.T) {
	for seed := range uint64(8) {
		unlocked := 0
		r := simulation.Run(func(ctx context.Context, w *simulation.World) error {
			n := w.Node("a")
			var m mvar.MVar[int]
			for range 3 {
				_ = n.Go(func() {
					runtime.LockOSThread()
					defer func() { runtime.UnlockOSThread(); unlocked++ }()
					for {
						v, _ := m.Take(bg)
						_ = suspend.Sleep(bg, time.Second)
						_ = m.Put(bg, v+1)
					}
				})
			}
			_ = m.Put(bg, 1)
			_ = suspend.Sleep(ctx, 10*time.Second)
			n.Crash()
			if unlocked != 3 {
				return errors.New("a task is left")
			}
			return nil
		}, simulation.Options{Seed: seed + 1})
		require.NoError(t, r.Err)
	}
}
