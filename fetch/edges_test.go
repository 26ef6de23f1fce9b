package fetch_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/fetch"
	"github.com/braidgo/braid/fetch/fetchtest"
	"github.com/braidgo/braid/suspend"
)

// A replay finds an Effect by its number. An Effect that is not remembered is not in the recording.
func TestRecordingOfEffects(t *testing.T) {
	n := 0
	e := fetch.NewEffect("effect", func(_ context.Context, b *fetch.Batch[string, int]) error {
		if n++; n == 2 {
			b.Fail("a", fetch.Transient(errOdd))
		} else {
			b.Set("a", n)
		}
		return nil
	}, fetch.SourceOptions{})
	program := func(got *[]int) func(context.Context) error {
		return func(ctx context.Context) error {
			for range cap(*got) {
				if v, err := e.Do(ctx, "a"); err == nil {
					*got = append(*got, v)
				}
			}
			return nil
		}
	}
	ctx, s := fetch.Open(t.Context(), fetch.Options{})
	was, is := make([]int, 0, 4), make([]int, 0, 3)
	require.NoError(t, program(&was)(ctx))
	require.Equal(t, []int{1, 3, 4}, was)
	r, err := s.Record()
	require.NoError(t, err)
	s.Close()
	require.Len(t, r.Sources["effect"], 3)
	require.NoError(t, fetch.Run(t.Context(), program(&is), fetch.Options{Replay: r}))
	require.Equal(t, was, is)
	require.Equal(t, 4, n)
}

// If two keys have the same JSON, Record fails. A replay would give both the same value.
func TestRecordOfTwoKeysThatAreOneInJSON(t *testing.T) {
	src := fetch.ByMap("any", func(_ context.Context, ks []any) (map[any]int, error) { return map[any]int{1: 1, 1.0: 2}, nil }, fetch.SourceOptions{})
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		vs, err := src.All(ctx, []any{1, 1.0})
		require.Equal(t, []int{1, 2}, vs)
		require.NoError(t, err)
		_, err = fetch.Of(ctx).Record()
		require.EqualError(t, err, "fetch: record of any: two keys have the same JSON 1")
		return nil
	}, fetch.Options{}))
}

func TestEachIsAsWideAsItSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		open, gate := 0, make(chan struct{})
		src := fetch.ByKey("each", 3, func(_ context.Context, k int) (int, error) {
			mu.Lock()
			open++
			mu.Unlock()
			<-gate
			return k, nil
		}, fetch.SourceOptions{})
		var all sync.WaitGroup
		all.Go(func() {
			require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
				_, err := src.All(ctx, []int{1, 2, 3, 4, 5, 6, 7, 8})
				return err
			}, fetch.Options{}))
		})
		for i := range 6 {
			synctest.Wait()
			require.Equal(t, 3+i, open, "three Gets are open, and %d have returned", i)
			if i < 5 {
				gate <- struct{}{}
			}
		}
		close(gate)
		all.Wait()
	})
}

// Several Overrides for different sources all apply. Of two for the same source, the last applies.
func TestEveryOverrideCounts(t *testing.T) {
	down := func(context.Context, []int) (map[int]int, error) { return nil, errOdd }
	a, b := fetch.ByMap("a", down, fetch.SourceOptions{}), fetch.ByMap("b", down, fetch.SourceOptions{})
	is := func(v int) func(context.Context, *fetch.Batch[int, int]) error {
		return func(_ context.Context, b *fetch.Batch[int, int]) error { b.Set(1, v); return nil }
	}
	o := fetch.Options{Use: []fetch.Override{a.Replace(is(1)), b.Replace(is(2)), b.Replace(is(3))}}
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		for src, want := range map[*fetch.Source[int, int]]int{a: 1, b: 3} {
			v, err := src.Get(ctx, 1)
			require.NoError(t, err)
			require.Equal(t, want, v)
		}
		return nil
	}, o))
}

// A key that cannot be hashed panics before All takes the session's guard. Otherwise the next Get would hang.
func TestAllOfAKeyThatCannotBeHashed(t *testing.T) {
	src := fetch.ByMap("any", func(context.Context, []any) (map[any]int, error) { return map[any]int{1: 1}, nil }, fetch.SourceOptions{})
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		require.Panics(t, func() { _, _ = src.All(ctx, []any{1, []int{1}}) })
		v, err := src.Get(ctx, 1)
		require.Equal(t, 1, v)
		return err
	}, fetch.Options{}))
}

func TestRunAfterClose(t *testing.T) {
	for _, o := range []fetch.Options{{}, {Eager: true}} {
		ctx, s := fetch.Open(t.Context(), fetch.Options{})
		s.Close()
		require.ErrorIs(t, fetch.Run(ctx, func(context.Context) error { t.Error("it runs"); return nil }, o), suspend.ErrEnded)
	}
}

// An override also applies to an Effect. Otherwise a test that replaces its sources would write to the real system.
func TestAnEffectIsReplaced(t *testing.T) {
	real := fetch.NewEffect("write", func(context.Context, *fetch.Batch[int, int]) error { t.Error("the real thing"); return nil }, fetch.SourceOptions{})
	stub := fetchtest.New("stub", func(k int) (int, error) { return 2 * k, nil }, fetch.SourceOptions{})
	o := fetch.Options{Use: []fetch.Override{real.Replace(stub.Load)}}
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		got, err := fetch.Map(ctx, []int{1, 2, 1}, real.Do)
		require.Equal(t, []int{2, 4, 2}, got)
		return err
	}, o))
	require.Equal(t, [][]int{{1, 2, 1}}, stub.Batches())
	require.PanicsWithValue(t, "fetch: nil function", func() { real.Replace(nil) })
}
