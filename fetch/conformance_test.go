package fetch_test

import (
	"context"
	"os"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/fetch"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
)

var paper = fetch.Stats{Rounds: 3, Batches: 4, Keys: 31, Gets: 51, Shared: 20}

func TestBlog(t *testing.T) {
	b := newBlog()
	_, stats, err := b.run(t.Context(), fetch.Options{})
	require.NoError(t, err)
	require.Equal(t, paper, stats)
	require.ElementsMatch(t, []string{"postIds 1", "postInfo 11", "postViews 11", "postContent 8"}, b.log)
}

// times returns how often a test repeats a program that must do the same each time.
func times(usual, full int) int {
	switch {
	case os.Getenv("BRAID_FETCH_PROGRAMS") != "":
		return full
	case testing.Short():
		return usual / 4
	}
	return usual
}

// The blog needs three rounds on every scheduler: nested in a task, and with its tasks on the scheduler.
func TestBlogOnEveryScheduler(t *testing.T) {
	want, _, err := newBlog().run(t.Context(), fetch.Options{})
	require.NoError(t, err)
	check := func(t *testing.T, o fetch.Options) {
		page, stats, err := newBlog().run(context.Background(), o)
		require.NoError(t, err)
		require.Equal(t, paper, stats)
		require.Equal(t, want, page)
	}
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		for range times(100, 300) {
			schedtest.Run(t, s, func() { check(t, fetch.Options{}) })
			check(t, fetch.Options{On: s})
		}
	})
	schedtest.NoGoroutines(t)
}

// Under load, batches are not split.
func TestBlogUnderLoad(t *testing.T) {
	var stop atomic.Bool
	defer stop.Store(true)
	for range 8 {
		go func() {
			for x := 1; !stop.Load(); x = x*7%1001 + 1 {
			}
		}()
	}
	for i := range times(8, 200) {
		o := fetch.Options{}
		if i%2 == 1 {
			o.On = suspend.Goroutines
		}
		_, stats, err := newBlog().run(t.Context(), o)
		require.NoError(t, err)
		require.Equal(t, paper, stats)
	}
}

// For each of four pairs of people, the program finds how long the oldest of their common friends has been registered. The
// friends are fetched in one round. daysRegistered is fetched lazily, only for the common friends, in a second round.
func TestCommonFriends(t *testing.T) {
	friendsOf := newFriends()
	days := newDays()
	pairs := [][2]string{{"ann", "bob"}, {"ann", "cid"}, {"bob", "cid"}, {"dan", "eve"}}
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		oldest, err := fetch.Map(ctx, pairs, func(ctx context.Context, pair [2]string) (int, error) {
			both, err := fetch.Map(ctx, pair[:], friendsOf.Get)
			if err != nil {
				return 0, err
			}
			most := 0
			for _, f := range common(both[0], both[1]) {
				d, err := days.Get(ctx, f)
				if err != nil {
					return 0, err
				}
				most = max(most, d)
			}
			return most, nil
		})
		require.Equal(t, []int{4, 5, 0, 4}, oldest)
		stats := fetch.Of(ctx).Stats()
		require.Equal(t, 2, stats.Rounds)
		return err
	}, fetch.Options{}))
	require.Len(t, friendsOf.Batches(), 1)
	require.ElementsMatch(t, []string{"ann", "bob", "cid", "dan", "eve"}, friendsOf.Batches()[0])
	require.Len(t, days.Batches(), 1)
	require.ElementsMatch(t, []string{"gina", "hal"}, days.Batches()[0])
}
