package idle_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/callback"
	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/limited"
	"github.com/braidgo/braid/adapters/random"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/idle"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
	"github.com/braidgo/braid/suspendtest"
)

var bg = context.Background()

// A batch is sent when no task can add a request to it.
func ExampleGroup() {
	pool := workstealing.New(workstealing.Options{Workers: 2})
	defer pool.Close()

	requests := chanx.New[int](10)
	answers := promise.New[string]()
	g := idle.New(pool, nil)
	for n := range 3 {
		_ = g.Go(func() {
			_ = requests.Send(bg, n)
			_, _ = answers.Await(bg)
		})
	}
	_ = g.WaitIdle(bg)
	fmt.Println(requests.Len(), "requests in one batch")
	_ = answers.Fill("here you are")
	fmt.Println(g.Wait(bg), g.Live(), "left, idle:", g.Idle())
	// Output:
	// 3 requests in one batch
	// <nil> 0 left, idle: true
}

// A Group passes the conformance kit on each scheduler.
func TestConformance(t *testing.T) {
	for _, sched := range schedtest.All {
		t.Run(sched.Name, func(t *testing.T) {
			suspendtest.Scheduler(t, func(testing.TB) (suspend.Spawner, func()) {
				if sched.Name == "goroutines" { // the kit starts tasks after close, which schedtest does not allow
					g := idle.New(suspend.Goroutines, nil)
					return g, func() { _ = g.Wait(bg) }
				}
				on, closed := sched.Open()
				return idle.New(on, nil), closed
			}, suspendtest.Options{})
		})
	}
}

// Tokens are passed around among tasks, each for a number of hops. While a token is under way, a task runs or is about to run, so
// the group is not idle. If it were, a batch would be sent too early, in two parts.
func TestIdleIsExact(t *testing.T) {
	const members, rounds = 5, 60
	schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
		var onWay, calls atomic.Int64
		g := idle.New(on, func() { calls.Add(1) })
		ring := make([]*chanx.Chan[int], members)
		for i := range ring {
			ring[i] = chanx.New[int](i % 3) // without a buffer, sender and receiver meet
		}
		ctx, stop := context.WithCancel(bg)
		defer stop()
		for i := range ring {
			require.NoError(t, g.Go(func() {
				for {
					hops, err := ring[i].Recv(ctx)
					if err != nil {
						return
					}
					for range hops % 3 {
						suspend.Yield()
					}
					if hops == 0 {
						onWay.Add(-1)
						continue
					}
					to := ring[(i+hops)%members]
					if err := g.Go(func() { _ = to.Send(ctx, hops-1) }); err != nil {
						t.Error(err)
					}
				}
			}))
		}
		for range rounds {
			require.NoError(t, g.WaitIdle(bg))
			require.Zero(t, onWay.Load(), "it is idle although tokens are on their way")
			n := 1 + rand.IntN(4)
			onWay.Add(int64(n))
			for range n {
				require.NoError(t, g.Go(func() { _ = ring[rand.IntN(members)].Send(ctx, rand.IntN(12)) }))
			}
		}
		require.NoError(t, g.WaitIdle(bg))
		require.Zero(t, onWay.Load())
		schedtest.Eventually(t, "senders are counted out last", func() bool { return g.Live() == members })
		require.Positive(t, calls.Load())
		stop()
		require.NoError(t, g.Wait(bg))
		require.Zero(t, g.Live())
		require.True(t, g.Idle())
	})
}

// onIdle may resume and start tasks, and is called again for them. A task that it resumes may have been the last to park.
func TestOnIdleGoesOn(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
		var m mvar.MVar[int]
		var turns atomic.Int32
		var g *idle.Group
		g = idle.New(on, func() {
			require.True(t, suspend.Forbidden(), "onIdle may suspend")
			if n := turns.Add(1); n <= 10 {
				if n%2 == 0 {
					_ = g.Go(func() { _ = m.Put(bg, int(n)) })
				} else {
					m.TryPut(int(n))
				}
			}
		})
		var sum atomic.Int64
		require.NoError(t, g.Go(func() {
			for range 10 {
				n, _ := m.Take(bg)
				sum.Add(int64(n))
			}
		}))
		require.NoError(t, g.Wait(bg))
		require.EqualValues(t, 55, sum.Load())
	})
}

// A member that waits until the others are idle counts as idle itself.
func TestAMemberWaits(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
		g := idle.New(on, nil)
		gate := latch.New(2)
		var waited atomic.Int32
		for range 3 {
			require.NoError(t, g.Go(func() { _ = gate.Wait(bg); waited.Add(1) }))
		}
		for range 2 {
			require.NoError(t, g.Go(func() { _ = g.WaitIdle(bg); gate.CountDown() }))
		}
		require.NoError(t, g.Wait(bg))
		require.EqualValues(t, 3, waited.Load())
	})
}

// A wait that is cancelled, and a task that is refused, leave the counts unchanged.
func TestCancelledAndRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fifo.New(fifo.Options{})
		g := idle.New(s, nil)
		gate := latch.New(1)
		require.NoError(t, s.Run(bg, func(context.Context) error {
			require.NoError(t, g.Go(func() { _ = gate.Wait(bg) }))
			require.NoError(t, g.WaitIdle(bg))
			ctx, cancel := context.WithTimeout(bg, time.Second)
			defer cancel()
			require.ErrorIs(t, g.Wait(ctx), context.DeadlineExceeded)
			require.ErrorIs(t, g.WaitIdle(ctx), context.DeadlineExceeded)
			gate.CountDown()
			return g.Wait(bg)
		}))
		require.ErrorIs(t, g.Go(func() {}), suspend.ErrClosed)
		require.True(t, g.Idle())
		require.Zero(t, g.Live())
		require.NoError(t, g.Wait(bg))
		require.NoError(t, g.WaitIdle(bg))
	})
}

// A Go that is refused does not call onIdle itself, because its caller may hold the lock that onIdle takes. A Go that panics does
// not leave a task in the count.
func TestRefusedUnderALock(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	var mu sync.Mutex
	called := make(chan struct{}, 9)
	hook := func() { mu.Lock(); defer mu.Unlock(); called <- struct{}{} }
	for _, on := range []suspend.Spawner{no(func() error { return suspend.ErrClosed }), no(func() error { panic("oops") })} {
		g := idle.New(on, hook)
		mu.Lock()
		func() {
			defer func() { _ = recover() }()
			require.ErrorIs(t, g.Go(func() {}), suspend.ErrClosed)
		}()
		require.Zero(t, g.Live())
		require.True(t, g.Idle())
		mu.Unlock()
	}
	<-called
}

// no is a Spawner that starts no task.
type no func() error

func (f no) Go(func()) error { return f() }

// A task that panics, or ends its goroutine, leaves the count.
func TestTasksThatDoNotReturn(t *testing.T) {
	s := workstealing.New(workstealing.Options{Workers: 2, OnPanic: func(any, []byte) {}})
	defer s.Close()
	g := idle.New(s, nil)
	for range 10 {
		require.NoError(t, g.Go(func() { suspend.Yield(); panic("oops") }))
	}
	require.NoError(t, g.Wait(bg))
	require.True(t, g.Idle())
}

// A waiting task that is killed leaves the count once. Otherwise, after a host has crashed, the group would never be idle again.
func TestKilled(t *testing.T) {
	r := simulation.Run(func(ctx context.Context, w *simulation.World) error {
		n := w.Node("n")
		g := idle.New(n, nil)
		for range 3 {
			require.NoError(t, g.Go(func() { _, _ = mvar.New[int]().Take(bg) }))
		}
		require.NoError(t, suspend.Sleep(ctx, time.Second))
		require.True(t, g.Idle())
		require.Equal(t, 3, g.Live())
		n.Crash()
		require.NoError(t, suspend.Sleep(ctx, time.Second))
		require.Zero(t, g.Live())
		require.True(t, g.Idle())
		return g.Wait(ctx)
	}, simulation.Options{})
	require.NoError(t, r.Err)
}

// A Group has the capabilities of its scheduler.
func TestUnwrap(t *testing.T) {
	on, closed := schedtest.All[4].Open()
	defer closed()
	g := idle.New(on, nil)
	_, ok := suspend.As[sched.Timers](g)
	require.True(t, ok)
	var here suspend.Spawner
	require.NoError(t, g.Go(func() { here = suspend.Here(); _ = suspend.Sleep(bg, time.Millisecond) }))
	require.NoError(t, g.Wait(bg))
	require.Same(t, g, here)
}

// A task that waits for the end of its own Group panics. Otherwise it would hang.
func TestAWaitOfATask(t *testing.T) {
	const text = "idle: Wait called by a task of the Group"
	schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
		g, other := idle.New(on, nil), idle.New(on, nil)
		inner := idle.New(g, nil) // the tasks of inner are tasks of g, too
		ended := 0
		require.NoError(t, inner.Go(func() {
			ctx, stop := context.WithTimeout(bg, time.Millisecond)
			defer stop()
			schedtest.Panics(t, text, func() { _ = inner.Wait(ctx) })
			schedtest.Panics(t, text, func() { _ = g.Wait(ctx) })
			require.NoError(t, other.Wait(bg))
			ended++
		}))
		require.NoError(t, g.Wait(bg))
		require.Equal(t, 1, ended)
	})
}

func TestMisuse(t *testing.T) {
	schedtest.Panics(t, "idle: nil Spawner", func() { idle.New(nil, nil) })
	schedtest.Panics(t, "idle: nil function", func() { _ = idle.New(suspend.Goroutines, nil).Go(nil) })
}

// If onIdle panics or exits, in a task that parks or ends, the Group still counts each task once.
func TestOnIdlePanics(t *testing.T) {
	for _, on := range []string{"fifo", "random", "workstealing", "eventloop", "callback", "limited"} {
		for what, fails := range map[string]func(){"panics": func() { panic("onIdle") }, "exits": runtime.Goexit} {
			for _, ends := range []bool{false, true} {
				t.Run(fmt.Sprint(on, ", onIdle ", what, ", a task ends: ", ends), func(t *testing.T) {
					defer schedtest.Within(t, schedtest.Deadline)()
					s, closeAll := openQuiet(t, on)
					defer closeAll()
					var failed atomic.Bool
					g := idle.New(s, func() {
						if failed.CompareAndSwap(false, true) {
							fails()
						}
					})
					gate := latch.New(1)
					require.NoError(t, g.Go(func() {
						if !ends {
							_ = gate.Wait(bg)
						}
					}))
					schedtest.Eventually(t, "onIdle is called", failed.Load)
					gate.CountDown()
					require.NoError(t, g.Wait(bg), "a task that has ended counts as live")
					require.True(t, g.Idle())
					runs, on := make(chan int), make(chan int)
					require.NoError(t, g.Go(func() { close(runs); <-on }))
					<-runs
					require.False(t, g.Idle(), "a running task was counted out twice")
					close(on)
					require.NoError(t, g.Wait(bg))
				})
			}
		}
	}
}

// openQuiet opens a scheduler whose tasks may panic.
func openQuiet(t *testing.T, name string) (s suspend.Spawner, closeAll func()) {
	drop := func(any, []byte) {}
	driven := func(s suspend.Spawner, run func(ctx context.Context, main func(context.Context) error) error) (suspend.Spawner, func()) {
		over, ended := latch.New(1), make(chan error)
		go func() { ended <- run(bg, func(ctx context.Context) error { return over.Wait(ctx) }) }()
		return s, func() { over.CountDown(); require.NoError(t, <-ended) }
	}
	switch name {
	case "fifo":
		s := fifo.New(fifo.Options{OnPanic: drop, StallAfter: -1})
		return driven(s, s.Run)
	case "random":
		s := random.New(random.Options{OnPanic: drop, StallAfter: -1})
		return driven(s, s.Run)
	case "workstealing":
		s := workstealing.New(workstealing.Options{Workers: 2, OnPanic: drop})
		return s, func() { _ = s.Close() }
	case "eventloop":
		s, err := eventloop.New(eventloop.Options{OnPanic: drop})
		require.NoError(t, err)
		return s, func() { _ = s.Close() }
	case "callback":
		s := callback.New(goExecutor{}, callback.Options{OnPanic: drop, StallAfter: -1})
		return s, func() { _ = s.Close() }
	}
	l := limited.New(2, limited.Options{OnPanic: drop})
	return l, func() { _ = l.Close() }
}

// A goExecutor runs each function on a new goroutine.
type goExecutor struct{}

func (goExecutor) Execute(f func()) error { go f(); return nil }

// Wait also waits for tasks that onIdle starts after the last task has ended.
func TestWaitWaitsForWhatOnIdleStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, fifo.Run(bg, func(ctx context.Context) error {
			started, ended := false, false
			var g *idle.Group
			g = idle.New(suspend.Here(), func() {
				if !started {
					started = true
					_ = g.Go(func() { _ = suspend.Sleep(bg, time.Second); ended = true })
				}
			})
			_ = g.Go(func() {})
			err := g.Wait(ctx)
			require.True(t, started && ended, "Wait has returned before the task that onIdle has started")
			return err
		}))
	})
}
