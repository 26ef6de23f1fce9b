package simulation_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/rate"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
)

// The Then of a node that crashes leaves the queue in which it waits, and its callback does not run, not even on a goroutine outside
// the World.
func TestAThenOfANodeThatCrashes(t *testing.T) {
	require.NoError(t, simulation.Run(func(ctx context.Context, w *simulation.World) error {
		n, l, p := w.Node("node"), rate.NewLimiter(rate.Every(time.Second), 1), promise.New[int]()
		var m mutex.Mutex
		m.Lock()
		l.Allow(1)
		called := func(error) { t.Error("a callback of a crashed node has run") }
		then := func() {
			on := suspend.Here().(suspend.Executor)
			suspend.Then(ctx, l.WaitOp(1), on, func(_ time.Time, err error) { called(err) })
			suspend.Then(ctx, m.LockOp(), on, func(_ struct{}, err error) { called(err) })
			suspend.Then(ctx, suspend.Choose(p.AwaitOp(), suspend.Map(suspend.After(time.Hour), func(time.Time, error) (int, error) { return 0, nil })), on,
				func(_ int, err error) { called(err) })
		}
		_ = n.Go(func() {
			defer then()
			then()
			_ = suspend.Sleep(ctx, time.Hour)
		})
		_ = suspend.Sleep(ctx, 100*time.Millisecond)
		n.Crash()
		m.Unlock()
		p.Fill(1)
		if !m.TryLock() {
			return errors.New("a node that has crashed has got the lock")
		}
		soon, stop := cancel.WithTimeout(ctx, 10*time.Second)
		defer stop()
		if _, err := suspend.Do(soon, l.WaitOp(1)); err != nil {
			return err
		}
		n.Restart(func(ctx context.Context) { _ = suspend.Sleep(ctx, time.Second) })
		return suspend.Sleep(ctx, 2*time.Hour)
	}, simulation.Options{Seed: 1}).Err)
}

// A Then that has its result, and whose callback has not been called, is dropped by the crash, too.
func TestACrashBetweenAResultAndItsCallback(t *testing.T) {
	calls := 0
	for seed := range uint64(50) {
		require.NoError(t, simulation.Run(func(ctx context.Context, w *simulation.World) error {
			n, p := w.Node("node"), promise.New[int]()
			_ = n.Go(func() {
				suspend.Then(ctx, p.AwaitOp(), suspend.Here().(suspend.Executor), func(int, error) {
					calls++
					if n.Crashed() {
						t.Error("a callback of a crashed node has run")
					}
				})
			})
			_ = suspend.Sleep(ctx, time.Millisecond)
			p.Fill(1)
			suspend.Yield()
			n.Crash()
			return suspend.Sleep(ctx, time.Second)
		}, simulation.Options{Seed: seed, Preempt: true}).Err)
	}
	require.Positive(t, calls)
	require.Less(t, calls, 50)
}

// A crash ends all Thens of its node before one of them leaves its queue: the permits of one are not granted to another.
func TestACrashOfSeveralThens(t *testing.T) {
	require.NoError(t, simulation.Run(func(ctx context.Context, w *simulation.World) error {
		n, s := w.Node("node"), semaphore.New(2)
		_ = s.Acquire(ctx, 1)
		called := func(_ struct{}, err error) { t.Error("a callback of a crashed node has run") }
		suspend.Then(ctx, s.AcquireOp(2), n, called)
		suspend.Then(ctx, s.AcquireOp(1), n, called)
		n.Crash()
		if !s.TryAcquire(1) {
			return errors.New("the permit is lost")
		}
		return suspend.Sleep(ctx, time.Second)
	}, simulation.Options{Seed: 1}).Err)
}

// A Then that has its result leaves the queues of its other cases, even if the crash drops its callback.
func TestACrashBetweenAResultAndItsCallbackLeavesTheLines(t *testing.T) {
	for seed := range uint64(10) {
		require.NoError(t, simulation.Run(func(ctx context.Context, w *simulation.World) error {
			n, s, l, p := w.Node("node"), semaphore.New(2), rate.NewLimiter(rate.Every(time.Second), 1), promise.New[struct{}]()
			_ = s.Acquire(ctx, 1)
			l.Allow(1)
			limited := suspend.Map(l.WaitOp(1), func(_ time.Time, err error) (struct{}, error) { return struct{}{}, err })
			suspend.Then(ctx, suspend.Choose(s.AcquireOp(2), limited, p.AwaitOp()), n, func(struct{}, error) {})
			acquired, waited := promise.New[error](), promise.New[error]()
			_ = w.Go(func() { acquired.Fill(s.Acquire(ctx, 1)) })
			_ = w.Go(func() { waited.Fill(l.Wait(ctx)) })
			_ = suspend.Sleep(ctx, time.Millisecond)
			p.Fill(struct{}{})
			n.Crash()
			for _, p := range []*promise.Promise[error]{acquired, waited} {
				if _, err := p.Await(ctx); err != nil {
					return err
				}
			}
			return nil
		}, simulation.Options{Seed: seed}).Err)
	}
}

// After the end of a run, a Then calls its function on a goroutine, as with any executor that has closed.
func TestAThenAfterTheRun(t *testing.T) {
	var over *simulation.World
	simulation.Run(func(_ context.Context, w *simulation.World) error { over = w; return nil }, simulation.Options{Seed: 1})
	p, got := promise.New[int](), make(chan int, 1)
	suspend.Then(context.Background(), p.AwaitOp(), over, func(v int, _ error) { got <- v })
	p.Fill(1)
	require.Equal(t, 1, <-got)
}

// A Then of a guest, which is outside the World, leaves nothing with the node, and ends if the node crashes before it is registered.
func TestAThenOfAGuest(t *testing.T) {
	simulation.Test(t, func(_ context.Context, w *simulation.World) error {
		n, p, q := w.Node("node"), promise.New[int](), promise.New[int]()
		n.Start(func(context.Context, *simulation.Host) {})
		p.Fill(1)
		var calls atomic.Int64
		for range 200 {
			suspend.Then(context.Background(), p.AwaitOp(), n, func(int, error) { calls.Add(1) })
		}
		time.Sleep(time.Second)
		require.EqualValues(t, 200, calls.Load())
		require.Zero(t, n.CrashFunctions())
		suspend.Then(context.Background(), q.AwaitOp(), n, func(int, error) { t.Error("a callback of a crashed node has run") })
		n.Crash()
		q.Fill(1)
		time.Sleep(time.Second)
		return nil
	}, simulation.TestOptions{Options: simulation.Options{Guests: true}, InProcess: true, Seeds: 5})
}
