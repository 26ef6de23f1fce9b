package fetch_test

import (
	"context"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/fetch"
	"github.com/braidgo/braid/internal/testrig/schedtest"
)

// Turns that take for ever, as on a machine that computes, do not hold up a request.
func TestSettleWithin(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	for _, o := range []fetch.Options{{Settle: math.MaxInt}, {Settle: math.MaxInt, SettleWithin: time.Nanosecond}, {Settle: -1}, {SettleWithin: -1}, {Settle: 1, SettleWithin: math.MaxInt64}} {
		src := newNumbers()
		ctx, s := fetch.Open(t.Context(), o)
		for k := range 3 {
			v, err := src.Get(ctx, k)
			require.NoError(t, err)
			require.Equal(t, 2*k, v)
		}
		require.Equal(t, fetch.Stats{Rounds: 3, Batches: 3, Keys: 3, Gets: 3}, s.Stats())
		s.Close()
	}
	require.PanicsWithValue(t, "fetch: neither turns nor a time to settle", func() { fetch.Open(t.Context(), fetch.Options{Settle: -1, SettleWithin: -1}) })
	require.PanicsWithValue(t, "fetch: options of a session for a Run inside one", func() {
		_ = fetch.Run(t.Context(), func(ctx context.Context) error {
			return fetch.Options{SettleWithin: 1}.Run(ctx, func(context.Context) error { return nil })
		})
	})
}

// The time begins again while more of a crowd come, and ends all the same.
func TestSettlingOfACrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newNumbers()
		ctx, s := fetch.Open(t.Context(), fetch.Options{Settle: -1, SettleWithin: 10 * time.Millisecond})
		begun := time.Now()
		ended := make([]time.Duration, 9)
		var all sync.WaitGroup
		come := []time.Duration{0, 9, 9, 19, 29, 39, 49, 51, 75} // ms
		for i, at := range come {
			all.Go(func() {
				time.Sleep(at * time.Millisecond)
				_, err := src.All(ctx, []int{100 + 2*i, 101 + 2*i}) // one that waits, for two keys
				require.NoError(t, err)
				ended[i] = time.Since(begun) / time.Millisecond
			})
		}
		all.Wait()
		require.Equal(t, []time.Duration{50, 50, 50, 50, 50, 50, 50, 61, 85}, ended)
		batches := src.Batches()
		require.Len(t, batches, 3)
		require.Equal(t, []int{114, 115}, batches[1])
		slices.Sort(batches[0])
		require.Equal(t, []int{100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113}, batches[0])
		s.Close()
	})
}
