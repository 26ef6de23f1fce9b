package integration_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/callback"
	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/broadcast"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/idle"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/keyed"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/lazy"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/rate"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/watch"
)

// alone are schedulers on which one task runs at a time, whatever happens.
var alone = []schedtest.Scheduler{
	{Name: "callback", Open: func() (suspend.Spawner, func()) {
		x := make(executor, 1)
		go func() {
			for f := range x {
				f()
			}
		}()
		s := callback.New(x, callback.Options{StallAfter: -1})
		return s, func() { _ = s.Close(); close(x) }
	}},
	{Name: "a pool of one", Open: func() (suspend.Spawner, func()) {
		s := workstealing.New(workstealing.Options{Workers: 1, StallAfter: -1})
		return s, func() { _ = s.Close() }
	}},
	{Name: "a reactor", Open: func() (suspend.Spawner, func()) {
		s, err := eventloop.New(eventloop.Options{HandOver: -1, StallAfter: -1})
		if err != nil {
			panic(err)
		}
		return s, func() { _ = s.Close() }
	}},
}

// ready are operations that may suspend, and never have to here.
func ready() map[string]func(ctx context.Context) error {
	full := chanx.New[int](2)
	filled, none := promise.New[int](), promise.New[int]()
	_ = filled.Fill(1)
	var m mutex.Mutex
	var rw mutex.RWMutex
	var mv mvar.MVar[int]
	sem, open, once := semaphore.New(1), latch.New(0), lazy.New(func(context.Context) (int, error) { return 1, nil }, lazy.Restart)
	state, topic := watch.New(1), broadcast.New[int]()
	sub := topic.Subscribe(1, broadcast.DropOldest)
	var locks keyed.Mutex[int]
	group := idle.New(suspend.Goroutines, nil)
	limiter := rate.NewLimiter(rate.Inf, 1)
	v := stm.NewVar(0)
	inbox := actor.Open[int](context.Background())
	return map[string]func(ctx context.Context) error{
		"Send and Recv": func(ctx context.Context) error {
			_ = full.Send(ctx, 1)
			_, err := full.Recv(ctx)
			return err
		},
		"Lock":      func(ctx context.Context) error { defer m.Unlock(); return m.Lock(ctx) },
		"With":      func(ctx context.Context) error { m.With(func() {}); return nil },
		"RLock":     func(ctx context.Context) error { defer rw.RUnlock(); return rw.RLock(ctx) },
		"Acquire":   func(ctx context.Context) error { defer sem.Release(1); return sem.Acquire(ctx, 1) },
		"Await":     func(ctx context.Context) error { _, err := filled.Await(ctx); return err },
		"Put, Take": func(ctx context.Context) error { _ = mv.Put(ctx, 1); _, err := mv.Take(ctx); return err },
		"Modify": func(ctx context.Context) error {
			mv.TryPut(1)
			return mv.Modify(ctx, func(n int) (int, error) { return n, nil })
		},
		"Latch": func(ctx context.Context) error { return open.Wait(ctx) },
		"Force": func(ctx context.Context) error { _, err := once.Force(ctx); return err },
		"Atomically": func(ctx context.Context) error {
			return stm.Atomically(ctx, func(tx *stm.Tx) error { v.Set(tx, v.Get(tx)+1); return nil })
		},
		"Changed": func(ctx context.Context) error { _, err := state.Changed(ctx, 77); return err },
		"Until": func(ctx context.Context) error {
			_, err := state.Until(ctx, func(int) bool { return true })
			return err
		},
		"broadcast":  func(ctx context.Context) error { _ = topic.Publish(ctx, 1); _, err := sub.Recv(ctx); return err },
		"keyed Lock": func(ctx context.Context) error { defer locks.Unlock(1); return locks.Lock(ctx, 1) },
		"Limiter":    func(ctx context.Context) error { return limiter.Wait(ctx) },
		"WaitIdle":   func(ctx context.Context) error { return group.WaitIdle(ctx) },
		"Receive": func(ctx context.Context) error {
			_ = inbox.Ref().SendWait(ctx, 1)
			_, err := inbox.Receive(ctx)
			return err
		},
		"Run of a scope": func(ctx context.Context) error {
			return scope.Run(ctx, func(context.Context, *scope.Scope) error { return nil })
		},
		"Sleep": func(ctx context.Context) error { return suspend.Sleep(ctx, 0) },
		"Select": func(ctx context.Context) error {
			_, err := suspend.Select(ctx, suspend.On(none.AwaitOp()), suspend.On(filled.AwaitOp()))
			return err
		},
		"Do": func(ctx context.Context) error { _, err := suspend.Do(ctx, filled.AwaitOp()); return err },
		"Suspend": func(ctx context.Context) error {
			_, err := suspend.Suspend(ctx, func(suspend.Resumer[int]) (int, bool) { return 1, true })
			return err
		},
		"in a Pull": func(ctx context.Context) error {
			next, stop := suspend.Pull(func(yield func(error) bool) { yield(suspend.Sleep(ctx, 0)) })
			defer stop()
			err, _ := next()
			return err
		},
	}
}

// A task whose operations never have to wait lets others have a turn.
func TestATaskThatIsAlwaysReadyStarvesNobody(t *testing.T) {
	for _, on := range alone {
		t.Run(on.Name, func(t *testing.T) {
			for name := range ready() {
				t.Run(name, func(t *testing.T) {
					op := ready()[name]
					defer schedtest.Within(t, schedtest.Deadline)()
					s, closeAll := on.Open()
					defer closeAll()
					ctx, cancel := context.WithCancel(context.Background())
					defer cancel()
					var other atomic.Bool
					n := 0
					schedtest.Run(t, s, func() {
						_ = s.Go(func() { other.Store(true) })
						for began := time.Now(); !other.Load(); n++ {
							if err := op(ctx); err != nil {
								t.Fatal(err)
							}
							if n%100 == 0 && time.Since(began) > 10*time.Second {
								t.Fatalf("no turn for others in %d operations", n)
							}
						}
					})
					if n < 10 {
						t.Errorf("%d operations", n)
					}
				})
			}
		})
	}
}

// An operation that never suspends is no place to give way, and fifo and random give way nowhere: their order is promised.
func TestATaskKeepsItsTurn(t *testing.T) {
	full, empty := chanx.New[int](1), chanx.New[int](1)
	_, _ = full.TrySend(1)
	var m mutex.Mutex
	sem, mv, p := semaphore.New(1), mvar.NewFull(1), promise.New[int]()
	never := func() {
		_, _ = full.TrySend(1)
		_, _, _ = empty.TryRecv()
		if m.TryLock() {
			m.Unlock()
		}
		if sem.TryAcquire(1) {
			sem.Release(1)
		}
		mv.TryRead()
		_, _, _ = p.Try()
		_, _ = suspend.TrySelect(context.Background(), suspend.On(p.AwaitOp()))
	}
	for _, on := range alone {
		t.Run(on.Name, func(t *testing.T) {
			defer schedtest.Within(t, schedtest.Deadline)()
			s, closeAll := on.Open()
			defer closeAll()
			schedtest.Run(t, s, func() {
				var other atomic.Bool
				_ = s.Go(func() { other.Store(true) })
				for !preempt.On() { // the task is asked to give way
					never()
				}
				defer preempt.Begin()()
				for range 1000 {
					never()
				}
				if other.Load() {
					t.Error("a Try has let others run")
				}
				if _ = suspend.Sleep(context.Background(), 0); !other.Load() {
					t.Error("uncovered: the task was not asked to give way")
				}
			})
		})
	}
	for _, on := range schedtest.All {
		if on.Name != "fifo" && on.Name != "random" {
			continue
		}
		t.Run(on.Name, func(t *testing.T) {
			defer schedtest.Within(t, schedtest.Deadline)()
			s, closeAll := on.Open()
			defer closeAll()
			schedtest.Run(t, s, func() {
				defer preempt.Begin()()
				var other atomic.Bool
				_ = s.Go(func() { other.Store(true) })
				for began := time.Now(); time.Since(began) < 100*time.Millisecond; { // too short a time can only hide a mistake
					_ = suspend.Sleep(context.Background(), 0)
				}
				if other.Load() {
					t.Error("the task has lost its turn")
				}
			})
		})
	}
}
