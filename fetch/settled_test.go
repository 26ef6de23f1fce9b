package fetch_test

import (
	"cmp"
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
	"github.com/braidgo/braid/fetch/fetchtest"
	"github.com/braidgo/braid/internal/testrig/schedtest"
)

// If turns take very long, as on a busy machine, SettleWithin sends the request.
func TestSettleWithin(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	for _, o := range []fetch.Options{{Settle: math.MaxInt}, {Settle: math.MaxInt, SettleWithin: time.Nanosecond}, {Settle: -1}, {SettleWithin: -1}, {Settle: 1, SettleWithin: math.MaxInt64}} {
		src := newNumbers(fetch.SourceOptions{})
		ctx, s := fetch.Open(t.Context(), o)
		for k := range 3 {
			v, err := src.Get(ctx, k)
			require.NoError(t, err)
			require.Equal(t, 2*k, v)
		}
		require.Equal(t, fetch.Stats{Rounds: 3, Batches: 3, Keys: 3, Gets: 3}, s.Stats())
		s.Close()
	}
	require.PanicsWithValue(t, "fetch: Settle and SettleWithin are both negative", func() { fetch.Open(t.Context(), fetch.Options{Settle: -1, SettleWithin: -1}) })
	require.PanicsWithValue(t, "fetch: Run in a session that already exists, with options for a new one", func() {
		_ = fetch.Run(t.Context(), func(ctx context.Context) error {
			return fetch.Run(ctx, func(context.Context) error { return nil }, fetch.Options{SettleWithin: 1})
		}, fetch.Options{})
	})
}

// The time to settle begins again while more tasks of a crowd come, and is longer for a large crowd, but it ends in any case.
func TestSettlingOfACrowd(t *testing.T) {
	type times = []time.Duration
	crowd := func(n int, more ...time.Duration) times { return slices.Concat(make(times, n), more) }
	for _, c := range []struct {
		within time.Duration
		come   times                 // in tenths of the time to settle
		ended  map[time.Duration]int // the number of tasks that got their values at each time
	}{
		{time.Millisecond, times{0, 10, 35}, map[time.Duration]int{10: 1, 20: 1, 45: 1}}, // a chain of tasks
		{0, times{0, 9, 29, 59, 99, 149, 151, 165}, map[time.Duration]int{150: 6, 161: 1, 175: 1}},
		{0, crowd(20), map[time.Duration]int{10 + 20*10: 20}},
		{0, crowd(900), map[time.Duration]int{10 + 28*10: 900}},
		{0, crowd(900, 285, 295, 305, 315, 325), map[time.Duration]int{32 * 10: 904, 335: 1}}, // 9.6 ms
		{time.Millisecond, crowd(3), map[time.Duration]int{10 + 3*10: 3}},
		{time.Millisecond, crowd(900), map[time.Duration]int{10 + 6*10: 900}},
		{time.Millisecond, crowd(900, 65, 75, 85, 95, 105), map[time.Duration]int{10 * 10: 904, 115: 1}}, // 10 ms
		{10 * time.Millisecond, times{0, 9, 19, 29, 39, 49, 51, 65}, map[time.Duration]int{50: 6, 61: 1, 75: 1}},
		{10 * time.Millisecond, crowd(900, 15, 25, 35, 45, 55), map[time.Duration]int{5 * 10: 904, 65: 1}},
		{9600 * time.Hour, crowd(900), map[time.Duration]int{2 * 10: 900}},
	} {
		synctest.Test(t, func(t *testing.T) {
			src := newNumbers(fetch.SourceOptions{})
			ctx, s := fetch.Open(t.Context(), fetch.Options{Settle: -1, SettleWithin: c.within})
			tenth := cmp.Or(c.within, 300*time.Microsecond) / 10
			begun := time.Now()
			ended := make(times, len(c.come))
			var all sync.WaitGroup
			for i, at := range c.come {
				all.Go(func() {
					time.Sleep(at*tenth + time.Duration(i))             // in sequence, so that the first task starts the time
					_, err := src.All(ctx, []int{100 + 2*i, 101 + 2*i}) // one waiting task, for two keys
					require.NoError(t, err)
					ended[i] = time.Since(begun) / tenth
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

// Calls that wait for no pending request do not count as a crowd, neither before two calls that do nor between them. The second
// of the two starts the time again, twice as long.
func TestOthersAreNotOfACrowd(t *testing.T) {
	const within = 99 * time.Microsecond
	for _, c := range []struct {
		name     string
		of       fetch.SourceOptions // of the other calls
		eager    bool
		open     bool          // a batch is open, for key 1
		key      int           // the key of the other calls
		patience time.Duration // how long the other calls wait before the two come
		ended    bool          // the batch has ended when the two come
	}{
		{"of an Immediate source", fetch.SourceOptions{Immediate: true, Fresh: true}, false, false, 1, time.Hour, false},
		{"for an open batch", fetch.SourceOptions{Fresh: true}, true, true, 1, time.Hour, false},
		{"given up while a round was open", fetch.SourceOptions{Fresh: true}, false, true, 2, within, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				others := fetchtest.New("others", func(k int) (int, error) { return k, nil }, c.of)
				ctx, s := fetch.Open(t.Context(), fetch.Options{Settle: -1, SettleWithin: within, Eager: c.eager})
				defer s.Close()
				get := func(ctx context.Context, key int) { _, _ = others.Get(ctx, key) }
				end := func() {}
				if c.open {
					end = others.Pause()
					go get(ctx, 1)
					time.Sleep(2 * within)
				}
				brief, stop := context.WithTimeout(ctx, c.patience)
				defer stop()
				for range 40 {
					go get(brief, c.key)
				}
				time.Sleep(10 * within)
				var all sync.WaitGroup
				if c.ended {
					end()
					synctest.Wait()
				} else {
					all.Go(func() {
						for range 20 {
							time.Sleep(within / 3)
							go get(ctx, c.key)
						}
					})
				}

				begun := time.Now()
				src := newNumbers(fetch.SourceOptions{})
				for i := range 2 {
					all.Go(func() {
						time.Sleep(within / 2 * time.Duration(i))
						_, err := src.Get(ctx, 100+i)
						require.NoError(t, err)
						require.Equal(t, 3*within, time.Since(begun))
					})
				}
				all.Wait()
				require.Len(t, src.Batches(), 1)
			})
		})
	}
}

// A crowd fills a processor's run queue several times, and its members come one after another. It needs one batch for each level.
func TestTurnsOfACrowd(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	src := newNumbers(fetch.SourceOptions{})
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
	require.LessOrEqual(t, s.Stats().Batches, 4) // usually 2, unless a time slice ends at a bad moment
	require.Equal(t, 12000, s.Stats().Keys)
}

// A crowd that grows by one member in each turn gets one batch.
func TestTurnsOfAGrowingCrowd(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	src := newNumbers(fetch.SourceOptions{})
	ctx, s := fetch.Open(t.Context(), fetch.Options{SettleWithin: -1})
	defer s.Close()
	var all sync.WaitGroup
	var come func(k int)
	come = func(k int) {
		if k < 250 {
			all.Go(func() { come(k + 1) })
			go func() {}() // takes the next turn, so that k+1 is queued behind the turns
			_, err := src.Get(ctx, k)
			require.NoError(t, err)
		}
	}
	come(100)
	all.Wait()
	require.LessOrEqual(t, s.Stats().Batches, 4) // usually 1, unless a time slice ends at a bad moment
}

// A crowd that does not fill a local run queue is sent before all compute-bound goroutines, which are in the global queue, have
// run once.
func TestTurnsOfASmallCrowd(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const computing, tries = 100, 20
	var turns atomic.Int64 // counts the turns of the computing goroutines, each of which queues at the end of the global queue
	var done atomic.Bool
	var busy sync.WaitGroup
	for range computing {
		busy.Go(func() {
			for !done.Load() {
				turns.Add(1)
				runtime.Gosched()
			}
		})
	}
	defer busy.Wait()
	defer done.Store(true)
	least := int64(math.MaxInt64) // repeats, because a time slice may end at a bad moment
	for range tries {
		var begun, sent int64
		src := fetch.New("src", func(context.Context, *fetch.Batch[int, int]) error {
			sent = max(sent, turns.Load())
			return nil
		}, fetch.SourceOptions{})
		ctx, s := fetch.Open(t.Context(), fetch.Options{SettleWithin: -1})
		runtime.Gosched()
		begun = turns.Load()
		var all sync.WaitGroup
		for k := range 60 {
			all.Go(func() { _, _ = src.Get(ctx, k) })
		}
		all.Wait()
		if s.Close(); s.Stats().Batches == 1 {
			least = min(least, sent-begun)
		}
	}
	require.Less(t, least, int64(computing/2))
}

// The settling of a crowd ends even if the crowd grows for ever.
func TestTurnsOfAnEndlessCrowd(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	src := newNumbers(fetch.SourceOptions{})
	ctx, s := fetch.Open(t.Context(), fetch.Options{SettleWithin: -1})
	defer s.Close()
	var all sync.WaitGroup
	var answered atomic.Bool
	var come func(k int)
	come = func(k int) {
		if k > 20_000 { // a busy machine may take thousands
			t.Error("none of 19,900 has an answer")
		} else if !answered.Load() {
			all.Go(func() { come(k + 1) })
			go func() {}() // takes the next turn, so that k+1 is queued behind the turns
			_, err := src.Get(ctx, k)
			require.NoError(t, err)
			answered.Store(true)
		}
	}
	come(100)
	all.Wait()
}

// A request that outlives its Run reaches the settled driver without a waiter of a crowd. An earlier crowd, which already has its
// values, must not make the next one wait as long as a large crowd.
func TestAnEarlierCrowdDoesNotCount(t *testing.T) {
	const within = 100 * time.Microsecond
	synctest.Test(t, func(t *testing.T) {
		src := newNumbers(fetch.SourceOptions{})
		ctx, s := fetch.Open(t.Context(), fetch.Options{Settle: -1, SettleWithin: within})
		defer s.Close()
		var all sync.WaitGroup
		for k := range 100 {
			all.Go(func() { require.NoError(t, getter(src, 100+k)(ctx)) })
		}
		all.Wait()

		one, cancel := context.WithCancel(ctx)
		hold := make(chan struct{})
		all.Go(func() {
			require.ErrorIs(t, fetch.Run(ctx, func(ctx context.Context) error {
				return fetch.Together(ctx, func(context.Context) error { _, err := src.Get(one, 1); return err },
					func(context.Context) error { <-hold; return nil })
			}, fetch.Options{}), context.Canceled)
		})
		synctest.Wait()
		all.Go(func() { require.NoError(t, fetch.Run(ctx, getter(src, 1), fetch.Options{})) })
		synctest.Wait()
		cancel()
		synctest.Wait()
		begun := time.Now()
		close(hold) // the Run ends, and its request starts a time to settle
		time.Sleep(within / 2)
		require.NoError(t, getter(src, 2)(ctx))
		require.Equal(t, 2*within, time.Since(begun))
		all.Wait()
		require.Equal(t, []int{1, 2}, src.Batches()[1])
	})
}
