package simulation_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
)

// inBubble calls Run in a bubble.
func inBubble(t *testing.T, o simulation.Options, main func(ctx context.Context, w *simulation.World) error) (r simulation.Report) {
	t.Helper()
	o.Seed, o.Bubble = 1, true
	synctest.Test(t, func(*testing.T) { r = simulation.Run(main, o) })
	return r
}

// A time.Sleep in a task takes its duration on the World's clock, and delays no timer.
func TestANativeSleepInABubble(t *testing.T) {
	r := inBubble(t, simulation.Options{}, func(ctx context.Context, w *simulation.World) error {
		begun := time.Now()
		var woke, set time.Duration
		_ = w.Go(func() { _ = suspend.Sleep(ctx, 1500*time.Millisecond); woke = time.Since(begun) })
		_ = suspend.Sleep(ctx, time.Millisecond)
		time.Sleep(time.Second)
		require.Zero(t, time.Since(suspend.Now()))
		w.AfterFunc(time.Second, func() { set = time.Since(begun) })
		_ = suspend.Sleep(ctx, time.Minute)
		require.Equal(t, 1500*time.Millisecond, woke)
		require.Equal(t, 2001*time.Millisecond, set)
		return nil
	})
	require.NoError(t, r.Err)
	require.Equal(t, time.Minute+1001*time.Millisecond, r.Elapsed)
}

// A run in which nothing can happen is a deadlock, with MaxTime or without.
func TestADeadlockInABubbleWithMaxTime(t *testing.T) {
	r := inBubble(t, simulation.Options{MaxTime: time.Hour}, func(ctx context.Context, _ *simulation.World) error {
		_ = suspend.Sleep(ctx, time.Minute)
		waitForever()
		return nil
	})
	require.ErrorIs(t, r.Err, simulation.ErrDeadlock)
	require.Equal(t, time.Minute, r.Elapsed)
}

// When a stock context ends in a bubble, it stops the timers of the contexts below it. These calls must not end the process.
func TestAStockCancelStopsATimerInABubble(t *testing.T) {
	r := inBubble(t, simulation.Options{}, func(ctx context.Context, w *simulation.World) error {
		parent, end := context.WithCancel(ctx)
		defer end()
		time.AfterFunc(time.Second, end)
		for range 3 {
			short, endShort := cancel.WithTimeout(parent, time.Hour)
			defer endShort()
			_ = w.Go(func() { _ = suspend.Sleep(short, 2*time.Hour) })
		}
		short, endShort := cancel.WithTimeout(parent, time.Hour)
		defer endShort()
		require.ErrorIs(t, suspend.Sleep(short, 2*time.Hour), context.Canceled)
		return suspend.Sleep(ctx, time.Minute)
	})
	require.NoError(t, r.Err)
	require.Equal(t, time.Minute+time.Second, r.Elapsed)
}

// A task cancels the context of an earlier wait, and the context ends while the task continues. The trace does not depend on when its
// goroutine runs.
func TestAStockCancelRepeats(t *testing.T) {
	var traces [2]strings.Builder
	for i := range traces {
		r := inBubble(t, simulation.Options{Trace: &traces[i]}, func(ctx context.Context, w *simulation.World) error {
			over, end := context.WithCancel(ctx)
			defer end()
			if err := suspend.Sleep(over, time.Second); err != nil {
				return err
			}
			end()
			for range i * 1000 {
				runtime.Gosched()
			}
			return suspend.Sleep(context.Background(), time.Second)
		})
		require.NoError(t, r.Err)
	}
	require.Equal(t, traces[0].String(), traces[1].String())
}

// A function of time.AfterFunc runs on a goroutine outside the World, and must not call methods for the World's own tasks.
func TestAStockTimerThatLogsInABubble(t *testing.T) {
	r := inBubble(t, simulation.Options{}, func(ctx context.Context, w *simulation.World) error {
		time.AfterFunc(time.Second, func() { w.Log("hello") })
		return suspend.Sleep(ctx, time.Minute)
	})
	require.ErrorIs(t, r.Err, simulation.ErrForeign)
}
