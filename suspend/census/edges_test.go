package census_test

import (
	"context"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/census"
)

func yields(n int) {
	for range n {
		suspend.Yield()
	}
}

// A waiter asks for more permits than the semaphore has after a Resize, and another waiter is queued before it.
func TestAWaiterForMoreThanThereIs(t *testing.T) {
	on(t)
	s := semaphore.New(4)
	_ = fifo.Run(bg, func(ctx context.Context) error {
		_ = s.Acquire(ctx, 4)
		for _, n := range []int64{2, 4} {
			_ = suspend.Here().Go(func() { _ = s.Acquire(ctx, n) })
			suspend.Yield()
		}
		s.Resize(2)
		require.Empty(t, census.Take().Deadlocks)
		s.Release(4)
		return nil
	})
}

// The loop acquires the permits and a worker releases them, so the loop does not hold them for ever. Its wait is only a possible
// deadlock.
func TestPermitsThatOthersGiveBack(t *testing.T) {
	on(t)
	s, seen := semaphore.New(2), false
	_ = fifo.Run(bg, func(ctx context.Context) error {
		for range 3 {
			_ = s.Acquire(ctx, 1)
			_ = suspend.Here().Go(func() {
				defer s.Release(1)
				yields(10)
				for _, d := range census.Take().Deadlocks {
					require.True(t, d.Possible)
					seen = true
				}
			})
		}
		return nil
	})
	require.True(t, seen, "uncovered")
}

// The lock is handed over while the census is off, and the new owner wakes up while the census is on.
func TestStartBetweenAHandOverAndItsWakeUp(t *testing.T) {
	var m, x mutex.Mutex
	ctx2, cancel := context.WithCancel(bg)
	_ = fifo.Run(bg, func(ctx context.Context) error {
		_ = m.LockContext(ctx)
		_ = suspend.Here().Go(func() { // task B
			_ = m.LockContext(ctx) // Unlock hands m over after 4 nudges
			m.Unlock()
			yields(3)
			_ = x.LockContext(ctx2)
		})
		suspend.Yield()
		for i := range 5 {
			m.Unlock()
			if i < 4 {
				_ = m.LockContext(ctx)
				suspend.Yield()
			}
		}
		on(t)
		suspend.Yield()
		if n := len(census.Take().Tasks); n != 0 {
			t.Errorf("%d tasks hold m, which is free", n)
		}
		_ = m.LockContext(ctx) // the main task will unlock m
		_ = suspend.Here().Go(func() { _ = x.LockContext(ctx); _ = m.LockContext(ctx2) })
		yields(5)
		if d := census.Take(); len(d.Deadlocks) > 0 {
			t.Error(d)
		}
		m.Unlock()
		yields(5)
		x.Unlock()
		cancel()
		return nil
	})
}

// The body of a Pull locks a mutex in the first next, and the caller of next waits outside the body. The census treats both as
// one task.
func TestTheBodyOfAPull(t *testing.T) {
	on(t)
	var a, b mutex.Mutex
	ctx, cancel := context.WithCancel(bg)
	_ = fifo.Run(bg, func(context.Context) error {
		_ = suspend.Here().Go(func() {
			next, stop := suspend.Pull(func(yield func(int) bool) { a.Lock(); defer a.Unlock(); yield(1); yield(2) })
			defer stop()
			next()
			suspend.Yield()
			_ = b.LockContext(ctx)
		})
		_ = suspend.Here().Go(func() { b.Lock(); defer b.Unlock(); _ = a.LockContext(ctx) })
		yields(5)
		if d := census.Take(); len(d.Deadlocks) != 1 {
			t.Error(d)
		}
		cancel()
		return nil
	})
}

// The semaphore grows, and no permit is acquired after that.
func TestResizedWhileHeld(t *testing.T) {
	on(t)
	s := semaphore.New(2)
	ctx, cancel := context.WithCancel(bg)
	_ = fifo.Run(bg, func(context.Context) error {
		_ = suspend.Here().Go(func() { _ = s.Acquire(bg, 1); suspend.Yield(); _ = s.Acquire(ctx, 2) })
		_ = suspend.Here().Go(func() { _ = s.Acquire(bg, 1); _ = suspend.Sleep(ctx, time.Hour) })
		suspend.Yield()
		s.Resize(3)
		yields(5)
		if d := census.Take(); len(d.Deadlocks) != 0 {
			t.Error(d)
		}
		cancel()
		return nil
	})
}

// The semaphore grew by two permits, and a task waits for them. The holder of its other permit waits for that task.
func TestTakenAfterAResize(t *testing.T) {
	on(t)
	s := semaphore.New(1)
	s.Resize(3)
	var m mutex.Mutex
	ctx, cancel := context.WithCancel(bg)
	_ = fifo.Run(bg, func(context.Context) error {
		_ = suspend.Here().Go(func() { _ = s.Acquire(bg, 1); suspend.Yield(); _ = m.LockContext(ctx) })
		_ = suspend.Here().Go(func() { m.Lock(); suspend.Yield(); _ = s.Acquire(ctx, 3) })
		yields(5)
		require.Len(t, census.Take().Deadlocks, 1)
		cancel()
		return nil
	})
}

// Two tasks hold a permit each. The later one releases its permit, so the other task must remain the holder.
func TestATaskGivesItsOwnBack(t *testing.T) {
	on(t)
	s := semaphore.New(2)
	_ = fifo.Run(bg, func(context.Context) error {
		_ = s.Acquire(bg, 1)
		other := false
		_ = suspend.Here().Go(func() { _ = s.Acquire(bg, 1); s.Release(1); other = true; yields(5) })
		suspend.Yield()
		for _, x := range census.Take().Tasks {
			for _, h := range x.Holds { // only the permit of the main task is left
				if other && !strings.HasSuffix(h.At.Func, "TestATaskGivesItsOwnBack.func1") {
					t.Errorf("%+v", x)
				}
			}
		}
		return nil
	})
}

// A coroutine became idle while the census was on, and runs a task while it is off. It must not keep the label of an idle
// coroutine.
func TestLabelAfterAStop(t *testing.T) {
	stop := census.Start(census.Options{StuckAfter: -1})
	_ = fifo.Run(bg, func(context.Context) error {
		_ = suspend.Here().Go(func() {})
		suspend.Yield()
		stop()
		_ = suspend.Here().Go(func() {
			var b strings.Builder
			_ = pprof.Lookup("goroutine").WriteTo(&b, 1)
			for _, part := range strings.Split(b.String(), "\n\n") {
				if strings.Contains(part, "TestLabelAfterAStop") && strings.Contains(part, "idle coroutine") {
					t.Error(part)
				}
			}
		})
		suspend.Yield()
		return nil
	})
}
