package fetch_test

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/fetch"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/lazy"
	"github.com/braidgo/braid/suspend"
)

// An executor creates the thunks of a level and then calls them, level by level.
func TestLater(t *testing.T) {
	src := newNumbers(fetch.SourceOptions{})
	ctx, s := fetch.Open(t.Context(), fetch.Options{})
	level := []int{1, 2, 3}
	for range 3 {
		var thunks []func() (int, error)
		for _, k := range level {
			thunks = append(thunks, fetch.Later(ctx, func(ctx context.Context) (int, error) { return src.Get(ctx, k) }))
		}
		level = nil
		for _, thunk := range thunks {
			v, err := thunk()
			require.NoError(t, err)
			again, err := thunk()
			require.NoError(t, err)
			require.Equal(t, v, again)
			level = append(level, v)
		}
	}
	require.Equal(t, [][]int{{1, 2, 3}, {4, 6}, {8, 12}}, src.Batches())
	require.Equal(t, 3, s.Stats().Rounds)

	panics := fetch.Later(ctx, func(context.Context) (int, error) { panic("oops") })
	fine := fetch.Later(ctx, func(ctx context.Context) (int, error) { return src.Get(ctx, 7) })
	for range 2 {
		require.PanicsWithValue(t, "oops", func() { _, _ = panics() })
	}
	v, err := fine()
	require.Equal(t, 14, v)
	require.NoError(t, err)

	after := fetch.Later(ctx, func(ctx context.Context) (int, error) { return src.Get(ctx, 99) })
	s.Close()
	_, err = after()
	require.ErrorIs(t, err, suspend.ErrEnded)
	_, err = fetch.Later(t.Context(), func(context.Context) (int, error) { return 0, nil })()
	require.ErrorIs(t, err, fetch.ErrNoSession)
}

// A Run runs the thunks that were created in its tasks. Several tasks may call one thunk.
func TestLaterInARun(t *testing.T) {
	src := newNumbers(fetch.SourceOptions{})
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		var thunks []func() (int, error)
		for k := range 5 {
			thunks = append(thunks, fetch.Later(ctx, func(ctx context.Context) (int, error) { return src.Get(ctx, k) }))
		}
		vs, err := fetch.Map(ctx, thunks, func(_ context.Context, thunk func() (int, error)) (int, error) { return thunk() })
		require.Equal(t, []int{0, 2, 4, 6, 8}, vs)
		return err
	}, fetch.Options{}))
	require.Len(t, src.Batches(), 1)
}

// A function that ends its goroutine, such as a failing require, does not affect other functions, whose thunks would hang
// otherwise.
func TestLaterOfAFunctionThatExits(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	for _, called := range []int{0, 1} { // the thunk that exits, and another one
		src := newNumbers(fetch.SourceOptions{})
		ctx, s := fetch.Open(t.Context(), fetch.Options{})
		thunks := []func() (int, error){
			fetch.Later(ctx, func(context.Context) (int, error) { runtime.Goexit(); return 0, nil }),
			fetch.Later(ctx, func(ctx context.Context) (int, error) { return src.Get(ctx, 1) }),
			fetch.Later(ctx, func(ctx context.Context) (int, error) { return src.Get(ctx, 2) }),
		}
		first := make(chan struct{})
		go func() {
			defer close(first)
			_, _ = thunks[called]()
		}()
		<-first
		_, err := thunks[0]()
		require.ErrorIs(t, err, suspend.ErrAbandoned)
		for k, thunk := range thunks[1:] {
			v, err := thunk()
			require.NoError(t, err)
			require.Equal(t, 2*(k+1), v)
		}
		require.Len(t, src.Batches(), 1)
		s.Close()
	}
}

// A thunk that is called where suspending is forbidden panics. The other thunks are not lost, and still share one batch.
func TestLaterWhereNothingMaySuspend(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	src := newNumbers(fetch.SourceOptions{})
	ctx, s := fetch.Open(t.Context(), fetch.Options{})
	var thunks []func() (int, error)
	for k := range 3 {
		thunks = append(thunks, fetch.Later(ctx, func(ctx context.Context) (int, error) { return src.Get(ctx, k) }))
	}
	require.Panics(t, func() { suspend.Bind(nil, func() { _, _ = thunks[0]() }) })
	for k, thunk := range thunks {
		v, err := thunk()
		require.NoError(t, err)
		require.Equal(t, 2*k, v)
	}
	require.Equal(t, [][]int{{0, 1, 2}}, src.Batches())
	s.Close()
}

// Thunks that need each other fail, like Memos. They do not hang.
func TestLaterOfItself(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	ctx, s := fetch.Open(t.Context(), fetch.Options{})
	var itself, one, other func() (int, error)
	itself = fetch.Later(ctx, func(context.Context) (int, error) { return itself() })
	one = fetch.Later(ctx, func(context.Context) (int, error) { return other() })
	other = fetch.Later(ctx, func(context.Context) (int, error) { return one() })
	for _, thunk := range []func() (int, error){itself, one, other} {
		_, err := thunk()
		require.ErrorIs(t, err, lazy.ErrRecursive)
	}
	s.Close()
}

// The requests of goroutines without a task are sent after the goroutines have settled. The goroutines get their values, and a crowd
// needs few batches.
func TestSettled(t *testing.T) {
	src := newNumbers(fetch.SourceOptions{})
	ctx, s := fetch.Open(t.Context(), fetch.Options{})
	var all sync.WaitGroup
	for k := range 1000 {
		all.Go(func() {
			for i := range 3 {
				v, err := src.Get(ctx, 1000*i+k)
				if fails := k == 13 && i == 0; (err != nil) != fails || !fails && v != 2*(1000*i+k) {
					t.Errorf("key %d: %d, %v", k, v, err)
				}
			}
			vs, err := fetch.Map(ctx, []int{k, k + 1}, src.Get) // starts tasks of its own
			if err == nil && vs[1] != 2*(k+1) {
				t.Errorf("key %d: %d", k, vs)
			}
		})
	}
	all.Wait()
	s.Close()
	t.Logf("%d batches", s.Stats().Batches)
	require.Less(t, s.Stats().Batches, 300)
	require.Equal(t, 3000, s.Stats().Keys)
}
