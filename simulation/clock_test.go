package simulation_test

import (
	"context"
	"errors"
	"math"
	"os"
	"testing"
	"time"

	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
	"github.com/stretchr/testify/require"
)

// A time that is beyond the range of the clock is never reached. It must not be reached at once.
func TestFarTimesAreNotReached(t *testing.T) {
	far := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, over := range map[string]func(w *simulation.World) bool{
		"Sleep": func(*simulation.World) bool { return suspend.Sleep(bg, math.MaxInt64) == nil },
		"After": func(*simulation.World) bool {
			_, err := suspend.Do(bg, suspend.After(math.MaxInt64))
			return err == nil
		},
		"SetReadDeadline": func(w *simulation.World) bool {
			a, _ := pair(bg, w)
			_ = a.SetReadDeadline(far)
			_, err := a.Read(make([]byte, 1))
			return errors.Is(err, os.ErrDeadlineExceeded)
		},
	} {
		for _, rate := range []float64{1, 0.5, 2, 1e-9} {
			run(t, func(ctx context.Context, w *simulation.World) error {
				_ = suspend.Sleep(ctx, 1)
				n := w.Node("a")
				n.Skew(0, rate)
				_ = n.Go(func() { require.False(t, over(w), "%s, rate %v", name, rate) })
				return suspend.Sleep(ctx, 24*time.Hour)
			})
		}
	}
}

// In the loop of a lease, a Sleep ends when the node's own clock has advanced by its duration, and not a nanosecond earlier.
func TestASleepIsNotTooShortByTheClockOfItsNode(t *testing.T) {
	for _, rate := range []float64{0.3, 0.999, 1.1, 1.5, 3, 7e8} {
		run(t, func(ctx context.Context, w *simulation.World) error {
			n := w.Node("n")
			n.Skew(time.Second, rate)
			_ = n.Go(func() {
				for i := range 1000 {
					begin, d := suspend.Now(), time.Duration(i*i*i)
					_ = suspend.Sleep(ctx, d)
					require.GreaterOrEqual(t, suspend.Now().Sub(begin), d, "rate %v", rate)
				}
				end := suspend.Now().Add(time.Hour)
				_ = suspend.Sleep(ctx, time.Hour)
				require.False(t, suspend.Now().Before(end))
				require.Less(t, suspend.Now().Sub(end), time.Second)
			})
			return suspend.Sleep(ctx, 24*time.Hour)
		})
	}
}

func TestSkewRefusesRatesThatAreNone(t *testing.T) {
	run(t, func(_ context.Context, w *simulation.World) error {
		for _, rate := range []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1), 1 << 31} {
			require.PanicsWithValue(t, "simulation: Skew with a rate that is not positive, or too large", func() { w.Node("n").Skew(0, rate) })
		}
		return nil
	})
}

// A timer that is due during a Pause fires after the Resume, unless it is stopped before.
func TestATimerOfAPausedNodeCanBeStopped(t *testing.T) {
	run(t, func(ctx context.Context, w *simulation.World) error {
		n, called := w.Node("n"), 0
		stop := n.AfterFunc(time.Second, func() { t.Error("it was stopped") })
		n.AfterFunc(time.Second, func() { called++ })
		n.Pause()
		_ = suspend.Sleep(ctx, time.Minute)
		require.True(t, stop())
		require.False(t, stop())
		n.Resume()
		_ = suspend.Sleep(ctx, time.Minute)
		require.Equal(t, 1, called)
		require.False(t, stop())
		return nil
	})
}

// Deadlines of stock code are relative to time.Now, whatever the virtual clock shows, so short ones do not pass at once.
func TestDeadlinesOfStockCode(t *testing.T) {
	for _, start := range []time.Time{{}, time.Now()} {
		for _, d := range []time.Duration{45 * time.Millisecond, time.Second, 5 * time.Second} {
			r := simulation.Run(func(ctx context.Context, w *simulation.World) error {
				a, b := pair(ctx, w)
				_ = suspend.Sleep(ctx, time.Hour)
				spawn(w, func() {
					_ = suspend.Sleep(ctx, d/2)
					_, _ = b.Write([]byte("x"))
				})
				begin := suspend.Now()
				for late := true; late; { // repeats, in case the process was delayed
					now := time.Now()
					require.NoError(t, a.SetReadDeadline(now.Add(d)))
					late = time.Since(now) > 40*time.Millisecond
				}
				_, err := a.Read(make([]byte, 1))
				require.NoError(t, err)
				_, err = a.Read(make([]byte, 1))
				require.ErrorIs(t, err, os.ErrDeadlineExceeded)
				require.Equal(t, max(d, 100*time.Millisecond), suspend.Now().Sub(begin))
				return nil
			}, simulation.Options{Seed: 1, Start: start})
			require.NoError(t, r.Err)
		}
	}
}

// In a trace, a node without a name would look like the World.
func TestANodeHasAName(t *testing.T) {
	run(t, func(_ context.Context, w *simulation.World) error {
		require.PanicsWithValue(t, "simulation: Node with an empty name", func() { w.Node("") })
		return nil
	})
}
