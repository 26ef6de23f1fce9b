package keyed_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/keyed"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// The Cache keeps the values of the last Gets, like a list in which each Get moves its key to the front, and its counts are
// right.
func TestTheLeastRecentlyUsedIsDropped(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		most := rapid.IntRange(1, 4).Draw(rt, "Max")
		steps := rapid.SliceOfN(rapid.IntRange(-3, 7), 1, 30).Draw(rt, "steps") // a negative step forgets a key
		synctest.Test(t, func(t *testing.T) {
			loads := 0
			c := keyed.NewCache(func(_ context.Context, k int) (int, error) { loads++; return k, nil }, keyed.CacheOptions{TTL: time.Hour, Max: most})
			var kept []int // ordered by use; the last key was used last
			want := keyed.CacheStats{}
			for _, k := range steps {
				i := slices.Index(kept, max(k, -k))
				if k < 0 {
					if c.Forget(-k); i >= 0 {
						kept = slices.Delete(kept, i, i+1)
					}
					continue
				}
				v, err := c.Get(bg, k)
				if err != nil || v != k {
					rt.Fatal(v, err)
				}
				synctest.Wait() // waits until the load has ended
				if i >= 0 {
					kept = slices.Delete(kept, i, i+1)
					want.Hits++
				} else if want.Loads++; len(kept) == most {
					kept = kept[1:]
					want.Evicted++
				}
				kept = append(kept, k)
			}
			want.Kept = len(kept)
			if got := c.Stats(); got != want || loads != want.Loads {
				rt.Fatalf("%+v after %v, and not %+v; %d loads", got, steps, want, loads)
			}
			for _, k := range slices.Backward(kept) { // begins with the key used last, so that no value is evicted
				_, _ = c.Get(bg, k)
			}
			if loads != want.Loads {
				rt.Fatalf("%v are not kept after %v", kept, steps)
			}
		})
	})
}

// A Get of a kept value counts as a use, so the value that was loaded first stays.
func TestTheLeastRecentlyUsedIsNotTheOldest(t *testing.T) {
	c := keyed.NewCache(func(_ context.Context, k int) (int, error) { return k, nil }, keyed.CacheOptions{TTL: time.Hour, Max: 2})
	for _, k := range []int{1, 2, 1, 3, 1} {
		_, err := c.Get(bg, k)
		require.NoError(t, err)
	}
	require.Equal(t, keyed.CacheStats{Kept: 2, Hits: 2, Loads: 3, Evicted: 1}, c.Stats())
}

// An expired value is evicted before one that has not expired, whichever was used last.
func TestAnExpiredValueMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := promise.New[int]()
		c := keyed.NewCache(func(ctx context.Context, k int) (int, error) {
			if k == 3 {
				return hold.Await(ctx)
			}
			return k, nil
		}, keyed.CacheOptions{TTL: time.Hour, Max: 2})
		_, _ = c.Get(bg, 1)
		time.Sleep(30 * time.Minute)
		_, _ = c.Get(bg, 2)
		_, _ = c.Get(bg, 1) // uses 1 after 2
		go func() { _, _ = c.Get(bg, 3) }()
		synctest.Wait()
		require.Equal(t, keyed.CacheStats{Kept: 2, Loading: 1, Hits: 1, Loads: 3}, c.Stats(), "a load takes no room")
		time.Sleep(30 * time.Minute)
		_ = hold.Fill(3)
		synctest.Wait()
		require.Equal(t, keyed.CacheStats{Kept: 2, Hits: 1, Loads: 3}, c.Stats())
		_, _ = c.Get(bg, 2)
		require.Equal(t, keyed.CacheStats{Kept: 2, Hits: 2, Loads: 3}, c.Stats())
	})
}

// The Gets that wait for a value get it, even if it is evicted meanwhile, and the counts distinguish these Gets.
func TestADroppedValueIsNotLost(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		gates := []*promise.Promise[int]{promise.New[int](), promise.New[int](), promise.New[int]()}
		c := keyed.NewCache(func(ctx context.Context, k int) (int, error) { return gates[k].Await(ctx) }, keyed.CacheOptions{TTL: time.Hour, Max: 1})
		var got atomic.Int32
		for i := range 6 {
			_ = s.Go(func() {
				if v, err := c.Get(bg, i%3); err == nil {
					got.Add(int32(v))
				}
			})
		}
		schedtest.Eventually(t, "six Gets", func() bool { s := c.Stats(); return s.Loads+s.Shared == 6 })
		require.Equal(t, keyed.CacheStats{Loading: 3, Loads: 3, Shared: 3}, c.Stats())
		for _, g := range gates {
			_ = g.Fill(10)
		}
		schedtest.Eventually(t, "all values", func() bool { return got.Load() == 60 })
		schedtest.Eventually(t, "the loads end", func() bool { return c.Stats().Loading == 0 })
		require.Equal(t, keyed.CacheStats{Kept: 1, Loads: 3, Shared: 3, Evicted: 2}, c.Stats())
	})
}

// On every scheduler, with failures, cancellations and Forgets, no more than Max values are kept, and each Get returns the value
// of its key.
func TestABoundUnderStress(t *testing.T) {
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		var got, failed atomic.Int64
		evicted := 0
		covered := func() bool { return got.Load() > 0 && failed.Load() > 0 && evicted > 0 }
		for round := 0; schedtest.More(round, 20, covered); round++ {
			c := keyed.NewCache(func(ctx context.Context, k int) (int, error) {
				suspend.Yield()
				if rand.IntN(5) == 0 {
					return 0, errOops
				}
				return -k, suspend.Err(ctx)
			}, keyed.CacheOptions{TTL: time.Hour, Max: 2})
			schedtest.Stress(t, next, 8, func(i int, rng *rand.Rand) {
				for range 10 {
					ctx, stop := schedtest.MayCancel(rng)
					k := rng.IntN(5)
					v, err := c.Get(ctx, k)
					if err != nil {
						failed.Add(1)
					} else if got.Add(1); v != -k {
						t.Errorf("%d for %d", v, k)
					}
					if stop(); rng.IntN(6) == 0 {
						c.Forget(k)
					}
					if n := c.Stats().Kept; n > 2 {
						t.Errorf("%d values are kept", n)
					}
				}
			})
			schedtest.Eventually(t, "the loads end", func() bool { return c.Stats().Loading == 0 })
			s := c.Stats()
			require.Zero(t, s.Loading)
			evicted += s.Evicted
		}
		if !covered() {
			t.Errorf("uncovered: %d got, %d failed, %d evicted", got.Load(), failed.Load(), evicted)
		}
	})
}

// A value that a Cache has evicted is freed.
func TestADroppedValueIsNotRetained(t *testing.T) {
	var objects schedtest.Objects
	c := keyed.NewCache(func(context.Context, int) (*schedtest.Object, error) { return objects.New(), nil }, keyed.CacheOptions{TTL: time.Hour, Max: 3})
	for k := range 10 {
		_, _ = c.Get(bg, k)
	}
	schedtest.Eventually(t, "the loads end", func() bool { return c.Stats().Loading == 0 })
	objects.Collected(t, 3)
	require.Equal(t, 3, c.Stats().Kept)
}

// Options with which a Cache would keep nothing panic, instead of silently loading each time. With the longest TTL a value never
// expires.
func TestCacheOptions(t *testing.T) {
	for text, o := range map[string]keyed.CacheOptions{
		"keyed: negative Max":    {TTL: time.Hour, Max: -1},
		"keyed: negative TTL":    {TTL: -1},
		"keyed: Max needs a TTL": {Max: 1000},
	} {
		schedtest.Panics(t, text, func() { keyed.NewCache(func(context.Context, int) (int, error) { return 1, nil }, o) })
	}
	synctest.Test(t, func(t *testing.T) {
		loads := 0
		c := keyed.NewCache(func(context.Context, int) (int, error) { loads++; return 1, nil }, keyed.CacheOptions{TTL: math.MaxInt64, Max: 1})
		for range 3 {
			_, _ = c.Get(bg, 1)
			time.Sleep(50 * 365 * 24 * time.Hour)
		}
		require.Equal(t, 1, loads)
	})
}

// A load whose key was forgotten does not count, because no later Get would share it.
func TestAForgottenLoadIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := keyed.NewCache(func(ctx context.Context, _ int) (int, error) { return 1, suspend.Sleep(ctx, time.Second) }, keyed.CacheOptions{})
		go c.Get(bg, 1)
		synctest.Wait()
		require.Equal(t, 1, c.Stats().Loading)
		c.Forget(1)
		require.Equal(t, keyed.CacheStats{Loads: 1}, c.Stats())
		time.Sleep(time.Hour)
	})
}

// The Cache keeps at most two values: those of the last Gets.
func ExampleCache_Stats() {
	squares := keyed.NewCache(func(_ context.Context, n int) (int, error) { return n * n, nil },
		keyed.CacheOptions{TTL: time.Minute, Max: 2})
	for _, n := range []int{1, 2, 1, 3} { // 3 replaces 2
		_, _ = squares.Get(bg, n)
	}
	s := squares.Stats()
	fmt.Println(s.Kept, "kept,", s.Hits, "hit,", s.Loads, "loads,", s.Evicted, "evicted")
	// Output: 2 kept, 1 hit, 3 loads, 1 evicted
}
