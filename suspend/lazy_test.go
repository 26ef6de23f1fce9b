package suspend_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
	"github.com/stretchr/testify/require"
)

// One queue has a waiter that is cancelled lazily, one that is cancelled eagerly, and one that is not cancelled. The first one
// stays in the queue until a Resume meets it.
func TestLazyAndEagerWaitersInOneQueue(t *testing.T) {
	for name, p := range map[string]struct {
		wait  func(ctx context.Context) error
		serve func() // one waiter
	}{
		"mvar": func() (p struct {
			wait  func(ctx context.Context) error
			serve func()
		}) {
			var m mvar.MVar[int]
			p.wait = func(ctx context.Context) error { _, err := m.Take(ctx); return err }
			p.serve = func() { m.TryPut(1) }
			return p
		}(),
		"mutex": func() (p struct {
			wait  func(ctx context.Context) error
			serve func()
		}) {
			var m mutex.Mutex
			m.TryLock()
			p.wait = m.LockContext
			p.serve = m.Unlock
			return p
		}(),
		"rendezvous": func() (p struct {
			wait  func(ctx context.Context) error
			serve func()
		}) {
			c := chanx.New[int](0)
			p.wait = func(ctx context.Context) error { return c.Send(ctx, 1) }
			p.serve = func() { _, _, _ = c.TryRecv() }
			return p
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
				var lazy, eager, plain error
				ended := 0
				ctx, cancel := context.WithCancel(bg)
				start := func(ctx context.Context, err *error) {
					_ = s.Go(func() { *err = p.wait(ctx); ended++ })
					suspend.Yield()
				}
				start(suspend.Lazily(ctx), &lazy)
				start(ctx, &eager)
				start(bg, &plain)
				cancel()
				for ended < 1 {
					suspend.Yield()
				}
				_ = suspend.Sleep(bg, time.Millisecond)
				if ended != 1 || !errors.Is(eager, context.Canceled) {
					t.Fatalf("%d ended, eager: %v", ended, eager)
				}
				p.serve()
				for ended < 3 {
					suspend.Yield()
				}
				if !errors.Is(lazy, context.Canceled) || plain != nil {
					t.Errorf("lazy: %v, plain: %v", lazy, plain)
				}
			})
		})
	}
}

func TestLazyWaits(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		schedtest.Run(t, s, func() {
			ctx, cancel := context.WithCancel(bg)
			lazily := suspend.Lazily(ctx)
			// A lazy wait that is resumed in time behaves like any other, also after waits with other contexts.
			var m mvar.MVar[int]
			for i := range 50 {
				_ = s.Go(func() { _ = m.Put(bg, i) })
				c := lazily
				switch i % 4 {
				case 1:
					c = bg
				case 2:
					c = ctx
				}
				if v, err := m.Take(c); v != i || err != nil {
					t.Fatalf("Take = %d, %v, want %d", v, err, i)
				}
			}
			// A cancelled lazy wait refuses the next Resume.
			p := promise.New[int]()
			_ = s.Go(func() { cancel(); _ = p.Fill(1) })
			if _, err := p.Await(lazily); err == nil {
				t.Log("the Fill came first") // the Fill came before the Await
			} else if !errors.Is(err, context.Canceled) {
				t.Errorf("Await = %v", err)
			}
			if _, err := m.Take(lazily); !errors.Is(err, context.Canceled) {
				t.Errorf("Take = %v with a context that has ended", err)
			}
		})
		// An operation that cannot wait lazily uses the context that was passed to Lazily.
		schedtest.Run(t, s, func() {
			ctx, cancel := context.WithTimeout(bg, time.Millisecond)
			defer cancel()
			sem := semaphore.New(0)
			if err := sem.Acquire(suspend.Lazily(ctx), 1); !errors.Is(err, context.DeadlineExceeded) && err != semaphore.ErrTooLarge {
				t.Errorf("Acquire = %v", err)
			}
			if err := suspend.Sleep(suspend.Lazily(ctx), time.Hour); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Sleep = %v", err)
			}
			child, stop := context.WithCancel(suspend.Lazily(ctx))
			defer stop()
			if _, err := new(mvar.MVar[int]).Take(child); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Take with a child = %v", err)
			}
		})
	})
}

func TestLazyAllocs(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		lazily := suspend.Lazily(ctx)
		var a, b mvar.MVar[int]
		_ = s.Go(func() {
			for {
				v, _ := a.Take(lazily)
				if v < 0 {
					return
				}
				_ = b.Put(lazily, v)
			}
		})
		if got := testing.AllocsPerRun(100, func() { _ = a.Put(lazily, 1); _, _ = b.Take(lazily) }); got > 0 {
			t.Errorf("%v allocations", got)
		}
		_ = a.Put(bg, -1)
	})
}

// A lazy wait that is cancelled must not change the registration that an earlier wait has left with another context.
func TestALazyCancellationLeavesTheRegistration(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		first, cancelFirst := cancel.New(bg)
		second, cancelSecond := cancel.New(bg)
		third, cancelThird := cancel.New(bg)
		var m mvar.MVar[int]
		_ = s.Go(func() { _ = m.Put(bg, 1) })
		if _, err := m.Take(first); err != nil {
			t.Error(err)
		}
		var p, never promise.Promise[int]
		why := errors.New("why")
		_ = s.Go(func() { cancelSecond(why); _ = p.Fill(1) })
		if _, err := p.Await(suspend.Lazily(second)); !errors.Is(err, context.Canceled) || !errors.Is(err, why) {
			t.Errorf("Await = %v", err)
		}
		oops := errors.New("oops")
		_ = s.Go(func() { cancelFirst(nil); suspend.Yield(); cancelThird(oops) })
		if _, err := never.Await(third); !errors.Is(err, oops) {
			t.Errorf("Await = %v", err)
		}
	})
}

// After cancel has returned, no Resume ends a lazy wait, not even with an error. The wait fails with the error of its context.
func TestACloseAfterACancelEndsALazyWaitAsCancelled(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		c := chanx.New[int](0)
		ctx, end := schedtest.WithCancel()
		ctx = suspend.Lazily(ctx)
		_ = ctx.Done() // now only the Done channel can cancel the lazy wait
		var err error
		_ = s.Go(func() { _, err = c.Recv(ctx) })
		suspend.Yield()
		end()
		require.NoError(t, c.Close())
		suspend.Yield()
		require.ErrorIs(t, err, context.Canceled)
	})
}
