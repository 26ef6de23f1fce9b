package explore_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

// The clock begins at January 1, 2000. Only timers and tasks that wake up move it. A look at the clock is a point.
func TestClock(t *testing.T) {
	begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	bg := context.Background()
	after := func(d time.Duration) (stop func() bool) { return suspend.AfterFunc(suspend.Here(), d, func() {}) }
	for name, p := range map[string]struct {
		sleeps func()
		looks  []string // the results of two looks
	}{
		"Sleep":     {func() { _ = suspend.Sleep(bg, time.Second) }, []string{"0s 0s", "0s 1s", "1s 1s"}},
		"AfterFunc": {func() { after(time.Second) }, []string{"0s 0s", "0s 1s", "1s 1s"}},
		"stopped":   {func() { after(time.Second)() }, []string{"0s 0s", "0s 1s", "1s 1s"}}, // the timer may fire before the first look
		"two": {func() { // the first timer may fire after the second, and then does not move the clock
			after(time.Second)
			_ = suspend.Sleep(bg, 2*time.Second)
		}, []string{"0s 0s", "0s 1s", "0s 2s", "1s 1s", "1s 2s", "2s 2s"}},
		"one after the other": {func() {
			_ = suspend.Sleep(bg, time.Second)
			_ = suspend.Sleep(bg, time.Second)
		}, []string{"0s 0s", "0s 1s", "0s 2s", "1s 1s", "1s 2s", "2s 2s"}},
		"deadline": {func() {
			ctx, stop := cancel.WithTimeout(bg, time.Second)
			at, _ := ctx.Deadline()
			require.Equal(t, time.Second, at.Sub(begin))
			_ = suspend.Sleep(ctx, time.Minute)
			stop()
		}, []string{"0s 0s", "0s 1m0s", "0s 1s", "1m0s 1m0s", "1s 1m0s", "1s 1s"}},
	} {
		seen := map[string]bool{}
		r := explore.Run(explore.Config{Points: true, Asleep: true, Preemptions: explore.Unlimited, Cancellations: explore.Never, Yields: 2}, func(w *explore.World) {
			w.Go("looks", func(context.Context) {
				first := suspend.Now().Sub(begin)
				seen[fmt.Sprint(first, " ", suspend.Now().Sub(begin))] = true
			})
			w.Go("sleeps", func(context.Context) { p.sleeps() })
		})
		require.Nil(t, r.Failure, name)
		require.True(t, r.Exhausted, name)
		require.Equal(t, p.looks, slices.Sorted(maps.Keys(seen)), name)
	}
}
