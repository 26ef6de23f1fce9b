package mutex_test

import (
	"context"
	"errors"
	"testing"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

func TestLockOp(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		schedtest.Run(t, s, func() {
			var m mutex.Mutex
			if _, err := suspend.Do(bg, m.LockOp()); err != nil || m.TryLock() {
				t.Fatalf("Do = %v, or it is not locked", err)
			}
			never := promise.New[int]()
			lock, other := suspend.CaseOf(m.LockOp()), suspend.CaseOf(never.AwaitOp())
			_ = s.Go(m.Unlock)
			if won, err := suspend.Select(bg, other, lock); won != suspend.Selectable(lock) || err != nil || m.TryLock() {
				t.Errorf("Select = %v, %v, or it is not locked", won, err)
			}
			m.Unlock()
			if !m.TryLock() {
				t.Error("not free at the end")
			}
		})
	})
}

// Unlock hands the lock over to a waiter in a Select, so that no task barges in before the Select returns.
func TestLockOpIsHandedOver(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		var m mutex.Mutex
		m.Lock()
		locked := false
		_ = s.Go(func() {
			_, _ = suspend.Do(bg, m.LockOp())
			locked = true
		})
		suspend.Yield()
		m.Unlock()
		if m.TryLock() {
			t.Error("the lock was free: a waiter in a Select was nudged")
		}
		suspend.Yield()
		if !locked {
			t.Error("not handed over")
		}
		m.Unlock()
	})
}

// A LockOp that loses leaves the lock to the next waiter, even if that waiter has been nudged.
func TestLockOpThatLosesLeavesNothing(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		for _, nudgedNeighbour := range []bool{false, true} {
			var m mutex.Mutex
			m.Lock()
			p := promise.New[int]()
			order := ""
			if nudgedNeighbour {
				_ = s.Go(func() { m.Lock(); order += "n"; m.Unlock() })
				suspend.Yield()
			}
			_ = s.Go(func() {
				_, _ = suspend.Select(bg, suspend.CaseOf(m.LockOp()), suspend.CaseOf(p.AwaitOp()))
				order += "s"
			})
			ctx, stop := cancel.New(bg)
			_ = s.Go(func() {
				if _, err := suspend.Do(ctx, m.LockOp()); errors.Is(err, context.Canceled) {
					order += "c"
				}
			})
			suspend.Yield()
			if nudgedNeighbour {
				m.Unlock()
				_ = m.TryLock()
			}
			_ = p.Fill(1)
			stop(nil)
			for i := 0; i < 100 && len(order) < 2; i++ {
				suspend.Yield()
			}
			m.Unlock()
			for range 10 {
				suspend.Yield()
			}
			want := 2
			if nudgedNeighbour {
				want = 3
			}
			if len(order) != want {
				t.Errorf("order %q", order)
			}
			if !m.TryLock() {
				t.Error("not free at the end")
			}
		}
	})
}
