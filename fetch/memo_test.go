package fetch_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/fetch"
	"github.com/braidgo/braid/suspend"
)

// With -race: a Get that gives up, in a trace, while the function runs and then ends.
func TestMemoThatIsGivenUpBeforeItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memo := fetch.NewMemo("memo", func(context.Context, int) (int, error) {
			time.Sleep(3 * time.Second)
			return 1, nil
		})
		o := fetch.Options{On: suspend.Goroutines, Trace: true}
		require.NoError(t, o.Run(t.Context(), func(ctx context.Context) error {
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
		}))
	})
}
