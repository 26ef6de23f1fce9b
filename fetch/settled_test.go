package fetch_test

import (
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
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

// The time begins again while more of a crowd come, each time for longer, and ends all the same.
func TestSettlingOfACrowd(t *testing.T) {
	const one, ms = 10 * time.Millisecond, time.Millisecond
	type times = []time.Duration
	crowd := func(n int, more ...time.Duration) times { return slices.Concat(make(times, n), more) }
	for _, c := range []struct {
		come  times                 // ms
		ended map[time.Duration]int // number of those that were answered at a time
	}{
		{times{0, 10, 35}, map[time.Duration]int{10: 1, 20: 1, 45: 1}}, // a chain
		{times{0, 9, 29, 59, 99, 149, 151, 165}, map[time.Duration]int{150: 6, 161: 1, 175: 1}},
		{crowd(20), map[time.Duration]int{10 + 20*10: 20}},
		{crowd(900), map[time.Duration]int{10 + 32*10: 900}},
		{crowd(900, 329, 655, 656), map[time.Duration]int{10 + 2*32*10: 901, 685: 2}},
	} {
		synctest.Test(t, func(t *testing.T) {
			src := newNumbers()
			ctx, s := fetch.Open(t.Context(), fetch.Options{Settle: -1, SettleWithin: one})
			begun := time.Now()
			ended := make(times, len(c.come))
			var all sync.WaitGroup
			for i, at := range c.come {
				all.Go(func() {
					time.Sleep(at*ms + time.Duration(i))                // one after another, so that the first begins the time
					_, err := src.All(ctx, []int{100 + 2*i, 101 + 2*i}) // one that waits, for two keys
					require.NoError(t, err)
					ended[i] = time.Since(begun) / ms
				})
			}
			all.Wait()
			got := map[time.Duration]int{}
			for _, at := range ended {
				got[at]++
			}
			require.Equal(t, c.ended, got)
			require.Len(t, src.Batches(), len(got))
			s.Close()
		})
	}
}

// A crowd that fills a processor's run queue several times, and whose members come one behind another, is one batch for each level.
func TestTurnsOfACrowd(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	src := newNumbers()
	ctx, s := fetch.Open(t.Context(), fetch.Options{SettleWithin: -1})
	defer s.Close()
	var all sync.WaitGroup
	for k := range 3000 {
		all.Go(func() {
			_, err := src.Get(ctx, 100+k)
			require.NoError(t, err)
			for i := range 3 {
				all.Go(func() {
					_, err := src.Get(ctx, 3100+3*k+i)
					require.NoError(t, err)
				})
			}
		})
	}
	all.Wait()
	require.LessOrEqual(t, s.Stats().Batches, 4) // 2, unless a time slice ends at a bad moment
	require.Equal(t, 12000, s.Stats().Keys)
}

// The turns of a crowd end though it grows for ever.
func TestTurnsOfAnEndlessCrowd(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	src := newNumbers()
	ctx, s := fetch.Open(t.Context(), fetch.Options{SettleWithin: -1})
	defer s.Close()
	var all sync.WaitGroup
	var answered atomic.Bool
	var come func(k int)
	come = func(k int) {
		if k > 5000 {
			t.Error("none of 4,900 has an answer")
		} else if !answered.Load() {
			all.Go(func() { come(k + 1) })
			go func() {}() // takes the next turn, so that k+1 comes behind the turns
			_, err := src.Get(ctx, k)
			require.NoError(t, err)
			answered.Store(true)
		}
	}
	come(100)
	all.Wait()
}
