package fetch_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/fetch"
)

// A source may set values for keys that were not requested, with Prime.
func TestPrimeInASource(t *testing.T) {
	byID := newNumbers(fetch.SourceOptions{})
	byName := fetch.New("byName", func(ctx context.Context, b *fetch.Batch[string, int]) error {
		b.Set("one", 1)
		require.True(t, byID.Prime(ctx, 1, 100))
		require.False(t, byID.Prime(ctx, 1, 200))
		return nil
	}, fetch.SourceOptions{Inline: true})
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		_, err := byName.Get(ctx, "one")
		require.NoError(t, err)
		v, err := byID.Get(ctx, 1)
		require.Equal(t, 100, v)
		return err
	}, fetch.Options{}))
	require.Empty(t, byID.Batches())
}

// Fail without an error panics. Otherwise the result would be a zero value without an error.
func TestFailWithoutAnError(t *testing.T) {
	src := fetch.New("fails", func(_ context.Context, b *fetch.Batch[int, int]) error { b.Fail(1, nil); return nil }, fetch.SourceOptions{})
	require.PanicsWithValue(t, "fetch: Fail with a nil error", func() {
		_ = fetch.Run(t.Context(), func(ctx context.Context) error { _, err := src.Get(ctx, 1); return err }, fetch.Options{})
	})
}

// Wrong arguments panic in the call that has them, and not later on another goroutine.
func TestArguments(t *testing.T) {
	load := func(context.Context, *fetch.Batch[int, int]) error { return nil }
	for text, fs := range map[string][]func(){
		"fetch: nil function": {
			func() { fetch.New[int, int]("", nil, fetch.SourceOptions{}) },
			func() { fetch.NewEffect[int, int]("", nil, fetch.SourceOptions{}) },
			func() { fetch.NewMemo[int, int]("", nil) },
			func() { fetch.ByMap[int, int]("", nil, fetch.SourceOptions{}) },
			func() { fetch.BySlice[int, int]("", nil, fetch.SourceOptions{}) },
			func() { fetch.ByKey[int, int]("", 1, nil, fetch.SourceOptions{}) },
			func() { newNumbers(fetch.SourceOptions{}).Replace(nil) },
			func() { fetch.Later[int](t.Context(), nil) },
			func() { _ = fetch.Run(t.Context(), nil, fetch.Options{}) },
		},
		"fetch: negative MaxBatch or MaxOpen": {
			func() { fetch.New("", load, fetch.SourceOptions{MaxBatch: -1}) },
			func() { fetch.NewEffect("", load, fetch.SourceOptions{MaxOpen: -1}) },
		},
		"fetch: Shared with a nil Source": {func() { fetch.Shared[int, int](nil, 1) }},
	} {
		for i, f := range fs {
			require.PanicsWithValue(t, text, f, i)
		}
	}
}
