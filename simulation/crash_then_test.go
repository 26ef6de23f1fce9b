package simulation_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/rate"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
)

// The Then of a node that crashes leaves the line in which it waits, and its callback does not run, not even on a goroutine outside the
// World.
func TestAThenOfANodeThatCrashes(t *testing.T) {
	require.NoError(t, simulation.Run(func(ctx context.Context, w *simulation.World) error {
		n, l, p := w.Node("node"), rate.NewLimiter(rate.Every(time.Second), 1), promise.New[int]()
		var m mutex.Mutex
		m.Lock()
		l.Allow(1)
		called := func(error) { t.Error("a callback of a node that has crashed") }
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
						t.Error("a callback of a node that has crashed")
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
