package simulation_test

import (
	"context"
	"testing"
	"time"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
	"github.com/stretchr/testify/require"
)

// deadlock runs a program that leaves a waiter behind, and returns the report.
func deadlock(t *testing.T, program func(ctx context.Context, w *simulation.World)) string {
	t.Helper()
	r := simulation.Run(func(ctx context.Context, w *simulation.World) error {
		program(ctx, w)
		waitForever()
		return nil
	}, simulation.Options{Seed: 1})
	require.ErrorIs(t, r.Err, simulation.ErrDeadlock)
	return r.Err.Error()
}

// A continuation that is never called has no task, so the report has no stack of it.
func TestADeadlockNamesWhatWaitsWithoutATask(t *testing.T) {
	var never, soon promise.Promise[int]
	text := deadlock(t, func(ctx context.Context, w *simulation.World) {
		server := w.Node("server")
		suspend.Then(ctx, never.AwaitOp(), server, func(int, error) {})
		suspend.Then(ctx, never.AwaitOp(), w, func(int, error) {})
		suspend.Then(ctx, soon.AwaitOp(), w.Node("done"), func(int, error) {})
		_ = soon.Fill(1)
	})
	const began = " is held by a wait without a task, which began at:\ngithub.com/braidgo/braid/suspend.Then"
	require.Contains(t, text, "server"+began)
	require.Contains(t, text, "the World"+began)
	require.Contains(t, text, "hold_test.go:")
	require.NotContains(t, text, "done is held")
}

// A crash releases the holds of its node. A later release must not release a hold of the second life.
func TestACrashReleasesHolds(t *testing.T) {
	var first, second func()
	text := deadlock(t, func(ctx context.Context, w *simulation.World) {
		n, other := w.Node("n"), w.Node("other")
		first, _ = n.Hold()
		_, _ = other.Hold()
		n.Crash()
		_, err := n.Hold()
		require.ErrorIs(t, err, suspend.ErrClosed)
		_, err = w.Node("m").Hold()
		require.NoError(t, err)
		w.Node("m").Crash()
		n.Restart(func(context.Context) {})
		second, err = n.Hold()
		require.NoError(t, err)
		first()
	})
	require.Contains(t, text, "\nn is held")
	require.Contains(t, text, "\nother is held")
	require.NotContains(t, text, "\nm is held")
	text = deadlock(t, func(_ context.Context, w *simulation.World) {
		release, _ := w.Node("n").Hold()
		release()
	})
	require.NotContains(t, text, "is held")
	second() // the run is over
}

// Like a suspended task, a hold does not prevent the end of a run when main returns.
func TestAHoldDoesNotKeepMain(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	var kept *simulation.World
	run(t, func(_ context.Context, w *simulation.World) error {
		kept = w
		_, err := w.Hold()
		return err
	})
	_, err := kept.Hold()
	require.ErrorIs(t, err, suspend.ErrClosed)
}

// A Hold by a goroutine outside ends the run, like any call from there. In a bubble, a timer of package time may call Hold.
func TestHoldFromOutside(t *testing.T) {
	r := simulation.Run(func(ctx context.Context, w *simulation.World) error {
		done := make(chan error)
		go func() {
			_, err := w.Hold()
			done <- err
		}()
		require.Error(t, <-done)
		return suspend.Sleep(ctx, time.Second)
	}, simulation.Options{Seed: 1})
	require.ErrorIs(t, r.Err, simulation.ErrForeign)
	var got time.Time
	simulation.Test(t, func(ctx context.Context, w *simulation.World) error {
		begun := time.Now()
		time.AfterFunc(time.Minute, func() {
			suspend.Then(ctx, suspend.After(time.Minute), w, func(at time.Time, _ error) { got = at })
		})
		err := suspend.Sleep(ctx, time.Hour)
		require.Equal(t, 2*time.Minute, got.Sub(begun))
		return err
	}, simulation.TestOptions{Seeds: 3, Options: simulation.Options{Bubble: true}})
}
