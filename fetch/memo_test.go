package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/fetch"
	"github.com/braidgo/braid/suspend"
)

// With -race and a trace: a Get is cancelled while the function runs, and then the function ends.
func TestMemoThatIsGivenUpBeforeItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memo := fetch.NewMemo("memo", func(context.Context, int) (int, error) {
			time.Sleep(3 * time.Second)
			return 1, nil
		})
		o := fetch.Options{On: suspend.Goroutines, Trace: true}
		require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
			return fetch.Together(ctx,
				func(ctx context.Context) error { _, err := memo.Get(ctx, 1); return err },
				func(ctx context.Context) error {
					time.Sleep(time.Second)
					ctx, stop := context.WithTimeout(ctx, time.Second)
					defer stop()
					_, err := memo.Get(ctx, 1)
					require.ErrorIs(t, err, context.DeadlineExceeded)
					return nil
				})
		}, o))
	})
}

// A transient error of a Memo is not remembered for the whole session.
func TestMemoOfATransientError(t *testing.T) {
	for _, passing := range []error{fetch.Transient(errOdd), fmt.Errorf("upstream: %w", context.Canceled)} {
		fails := 1
		flaky := fetch.New("flaky", func(_ context.Context, b *fetch.Batch[int, int]) error {
			if fails--; fails >= 0 {
				return passing
			}
			b.Set(1, 2)
			return nil
		}, fetch.SourceOptions{})
		memos := map[string]*fetch.Memo[int, int]{
			"of a source": fetch.NewMemo("of a source", flaky.Get),
			"of another":  fetch.NewMemo("of another", fetch.NewMemo("inner", flaky.Get).Get),
			"own": fetch.NewMemo("own", func(context.Context, int) (int, error) {
				if fails--; fails >= 0 {
					return 0, passing
				}
				return 2, nil
			}),
		}
		for name, memo := range memos {
			t.Run(name, func(t *testing.T) {
				fails = 1
				require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
					_, err := memo.Get(ctx, 1)
					require.ErrorIs(t, err, errors.Unwrap(passing))
					v, err := memo.Get(ctx, 1)
					require.Equal(t, 2, v)
					return err
				}, fetch.Options{}))
			})
		}
	}
}

// The error that a function returns after its cancellation is not remembered as the value of the Memo.
func TestMemoOfACancelledItem(t *testing.T) {
	src := newNumbers(fetch.SourceOptions{})
	memo := fetch.NewMemo("default", func(ctx context.Context, k int) (int, error) {
		v, err := src.Get(ctx, k)
		if err != nil {
			return -1, nil // as in a page whose service is down
		}
		return v, nil
	})
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		inner, end := context.WithCancel(ctx)
		err := fetch.Together(ctx, func(context.Context) error { suspend.Yield(); end(); return nil },
			func(context.Context) error {
				_, err := memo.Get(inner, 1)
				require.ErrorIs(t, err, context.Canceled)
				return nil
			})
		require.NoError(t, err)
		v, err := memo.Get(ctx, 1)
		require.Equal(t, 2, v)
		return err
	}, fetch.Options{}))
}
