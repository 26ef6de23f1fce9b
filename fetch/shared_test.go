package fetch_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/fetch"
	"github.com/braidgo/braid/internal/testrig/schedtest"
)

// A source that makes several calls for a batch has the same results if it is Shared: a failed call does not affect the keys of
// other calls.
func TestSharedSourceOfSeveralCalls(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	plain := fetch.New("calls", func(_ context.Context, b *fetch.Batch[int, int]) error {
		switch b.Keys()[0] {
		case 1:
			return nil // not found
		case 2:
			return errOdd
		case 3:
			panic("three")
		case 4:
			runtime.Goexit()
		case 5:
			b.Fail(5, fetch.Transient(errOdd))
			return nil
		}
		b.Set(6, 60)
		return nil
	}, fetch.SourceOptions{MaxBatch: 1})
	for _, src := range []*fetch.Source[int, int]{plain, fetch.Shared(plain, 1)} {
		require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
			errs := make([]error, 7)
			var panicked any
			_, err := fetch.Map(ctx, []int{1, 2, 3, 4, 5, 6}, func(ctx context.Context, k int) (v int, _ error) {
				defer func() {
					if p := recover(); p != nil {
						panicked = p
					}
				}()
				v, errs[k] = src.Get(ctx, k)
				if k == 6 {
					require.Equal(t, 60, v)
				}
				return v, nil
			})
			require.EqualError(t, errs[1], "calls 1: fetch: not found")
			require.EqualError(t, errs[2], "calls 2: odd")
			require.Equal(t, "three", panicked)
			require.EqualError(t, errs[4], "calls 4: fetch: the source did not return")
			require.EqualError(t, errs[5], "calls 5: odd")
			require.NoError(t, errs[6])
			return err
		}, fetch.Options{}))
	}
}

// A source that calls Get inside a Run must not get the error that suggests a Run.
func TestSharedSourceFetches(t *testing.T) {
	other := newNumbers(fetch.SourceOptions{})
	src := fetch.Shared(fetch.New("shared", func(ctx context.Context, _ *fetch.Batch[int, int]) error {
		_, err := other.Get(ctx, 1)
		require.ErrorIs(t, fetch.Run(ctx, func(context.Context) error { return nil }, fetch.Options{}), fetch.ErrInSource)
		return err
	}, fetch.SourceOptions{}), 1)
	err := fetch.Run(t.Context(), func(ctx context.Context) error { _, err := src.Get(ctx, 1); return err }, fetch.Options{})
	require.ErrorIs(t, err, fetch.ErrInSource)
}
