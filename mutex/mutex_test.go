package mutex_test

//lint:file-ignore SA2001 the lock itself is tested, not what it protects

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/suspend"
)

var bg = context.Background()

func TestLockExcludes(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		var m mutex.Mutex
		var done atomic.Int32
		n := 0
		for range 16 {
			_ = s.Go(func() {
				for range 1000 {
					m.Lock()
					n++
					if n%7 == 0 {
						suspend.Yield()
					}
					m.Unlock()
				}
				done.Add(1)
			})
		}
		schedtest.Run(t, s, func() {
			for done.Load() < 16 {
				suspend.Yield()
			}
			m.Lock()
			defer m.Unlock()
			if n != 16000 {
				t.Errorf("n = %d, want 16000", n)
			}
		})
	})
}

func TestTryLock(t *testing.T) {
	var m mutex.Mutex
	if !m.TryLock() || m.TryLock() {
		t.Fatal("TryLock of a free mutex, then of a held one")
	}
	m.Unlock()
	if !m.TryLock() {
		t.Fatal("TryLock after Unlock")
	}
	m.Unlock()
}

func TestUnlockOfUnlockedPanicsAndLeavesTheMutexUsable(t *testing.T) {
	var m mutex.Mutex
	schedtest.Panics(t, "mutex: Unlock of an unlocked Mutex", m.Unlock)
	if !m.TryLock() {
		t.Error("not free afterwards")
	}
	m.Unlock()
}

func TestDoneContextFailsThoughFree(t *testing.T) {
	cause := errors.New("cause")
	ctx, cancel := context.WithCancelCause(bg)
	cancel(cause)
	var m mutex.Mutex
	err := m.LockContext(ctx)
	if !errors.Is(err, cause) || !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	if !m.TryLock() {
		t.Error("held afterwards")
	}
}

// On fifo the order of all steps is known, so the test cancels at each point exactly.
func TestCancelAtEachPoint(t *testing.T) {
	t.Run("while queued", func(t *testing.T) {
		schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
			var m mutex.Mutex
			m.Lock()
			ctx, cancel := context.WithCancel(bg)
			var got error
			order := ""
			_ = s.Go(func() { got = m.LockContext(ctx); order += "a" })
			_ = s.Go(func() { m.Lock(); order += "b"; m.Unlock() })
			suspend.Yield()
			cancel()
			for order != "a" {
				suspend.Yield()
			}
			if !errors.Is(got, context.Canceled) {
				t.Errorf("Lock = %v", got)
			}
			m.Unlock()
			for order != "ab" {
				suspend.Yield()
			}
			if !m.TryLock() {
				t.Error("not free at the end")
			}
		})
	})
	t.Run("after the nudge", func(t *testing.T) {
		schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
			var m mutex.Mutex
			m.Lock()
			ctx, cancel := context.WithCancel(bg)
			order := ""
			_ = s.Go(func() {
				if m.LockContext(ctx) == nil {
					order += "A"
					m.Unlock()
				} else {
					order += "a"
				}
			})
			_ = s.Go(func() { m.Lock(); order += "b"; m.Unlock() })
			suspend.Yield()
			m.Unlock() // nudges a, which competes: cancelled or not, a finds the lock free
			if !m.TryLock() {
				t.Error("a nudge left the lock taken")
			}
			cancel()
			suspend.Yield() // a fails: its context ends before a queues again
			if order != "a" {
				t.Errorf("order %q after the cancellation", order)
			}
			m.Unlock()
			for order != "ab" {
				suspend.Yield()
			}
		})
	})
	t.Run("after the nudge, the lock being free", func(t *testing.T) {
		schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
			var m mutex.Mutex
			m.Lock()
			ctx, cancel := context.WithCancel(bg)
			order := ""
			_ = s.Go(func() {
				if m.LockContext(ctx) == nil {
					t.Error("locked with a done context")
				}
				order += "a"
			})
			_ = s.Go(func() { m.Lock(); order += "b"; m.Unlock() })
			suspend.Yield()
			m.Unlock()
			cancel()
			// The Lock of a returns the error, and passes the nudge on to b.
			for range 10 {
				suspend.Yield()
			}
			if order != "ab" {
				t.Errorf("order %q: the nudge was swallowed", order)
			}
		})
	})
	t.Run("after the hand-over", func(t *testing.T) {
		schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
			var m mutex.Mutex
			m.Lock()
			ctx, cancel := context.WithCancel(bg)
			got := errors.New("none")
			_ = s.Go(func() { got = m.LockContext(ctx) })
			suspend.Yield()
			for m.Unlock(); m.TryLock(); m.Unlock() { // until Unlock hands m over
				suspend.Yield()
				if got == nil {
					t.Fatal("the waiter was not kept out by barging")
				}
			}
			cancel()
			suspend.Yield()
			if got != nil {
				t.Errorf("Lock = %v, though it was handed the lock", got)
			}
			if m.TryLock() {
				t.Error("free, though it was handed over")
			}
			m.Unlock()
		})
	})
}

// A barger that unlocks only for an instant cannot keep a waiter out for ever.
func TestBargingIsBounded(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		var m mutex.Mutex
		m.Lock()
		served := false
		_ = s.Go(func() { m.Lock(); served = true; m.Unlock() })
		suspend.Yield()
		turns := 0
		for ; !served; turns++ {
			m.Unlock()
			m.Lock() // barges as often as patience allows
			suspend.Yield()
			if turns > 100 {
				t.Fatal("starved")
			}
		}
		if turns == 0 {
			t.Error("never barged: the test has tested nothing")
		}
	})
}

func TestWaitersAreServedInOrder(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		var m mutex.Mutex
		m.Lock()
		var order []int
		for i := range 10 {
			_ = s.Go(func() { m.Lock(); order = append(order, i); m.Unlock() })
			suspend.Yield()
		}
		m.Unlock()
		for len(order) < 10 {
			suspend.Yield()
		}
		for i, v := range order {
			if i != v {
				t.Fatalf("order %v", order)
			}
		}
	})
}

// No matter what is cancelled, and when, at most one task holds the lock, and it is free in the end.
func TestStressWithCancellation(t *testing.T) {
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		const tasks, rounds = 24, 400
		var m mutex.Mutex
		var inside, locked, cancelled atomic.Int64
		covered := func() bool { return locked.Load() > 0 && cancelled.Load() > 0 }
		schedtest.Stress(t, next, tasks, func(_ int, rng *rand.Rand) {
			for k := 0; schedtest.More(k, rounds, covered); k++ {
				ctx, cancel := schedtest.MayCancel(rng)
				if err := m.LockContext(ctx); err != nil {
					cancelled.Add(1)
					if !errors.Is(err, context.Canceled) {
						t.Errorf("Lock = %v", err)
					}
				} else {
					if inside.Add(1) != 1 {
						t.Error("two inside")
					}
					if rng.IntN(4) == 0 {
						suspend.Yield()
					}
					inside.Add(-1)
					m.Unlock()
					locked.Add(1)
				}
				cancel()
			}
		})
		t.Logf("%d locked, %d cancelled", locked.Load(), cancelled.Load())
		if !covered() {
			t.Error("an outcome was not covered")
		}
		if !m.TryLock() {
			t.Error("not free in the end")
		}
	})
}

func TestAllocs(t *testing.T) {
	var m mutex.Mutex
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	for name, limit := range map[string]struct {
		f   func()
		max float64
	}{
		"free":             {func() { m.Lock(); m.Unlock() }, 0},
		"free, cancelable": {func() { _ = m.LockContext(ctx); m.Unlock() }, 0},
		"try":              {func() { m.TryLock(); m.Unlock() }, 0},
	} {
		if got := testing.AllocsPerRun(100, limit.f); got > limit.max {
			t.Errorf("%s: %v allocations, limit %v", name, got, limit.max)
		}
	}
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		stop := false
		_ = s.Go(func() {
			for !stop {
				_ = m.LockContext(ctx)
				suspend.Yield()
				m.Unlock()
			}
		})
		got := testing.AllocsPerRun(100, func() {
			_ = m.LockContext(ctx)
			suspend.Yield()
			m.Unlock()
		})
		if got > 0 {
			t.Errorf("contended on fifo: %v allocations", got)
		}
		stop = true
	})
}

func TestLocker(t *testing.T) {
	var m mutex.Mutex
	l := &m
	l.Lock()
	if m.TryLock() {
		t.Error("the Locker locks something else")
	}
	l.Unlock()
	if !m.TryLock() {
		t.Error("the Locker did not unlock")
	}
}

// With unlocks even if its function panics or exits, and waits for the lock in order.
func TestWith(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		var m mutex.Mutex
		n := 0
		var fs []func()
		for i := range 20 {
			fs = append(fs, func() {
				defer func() { _ = recover() }()
				m.Lock()
				defer m.Unlock()
				n++
				suspend.Yield()
				if i%2 == 0 {
					panic("oops")
				}
			})
		}
		schedtest.Run(t, s, fs...)
		if n != 20 || !m.TryLock() {
			t.Errorf("%d of 20, or it is still locked", n)
		}
	})
}
