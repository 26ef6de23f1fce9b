package fetch_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/fetch"
	"github.com/braidgo/braid/fetch/fetchtest"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
)

// Sources of a simulation need not be Inline: a batch is a task of the World. See fetch/README.md.
func TestInASimulatedWorld(t *testing.T) {
	simulation.Test(t, func(ctx context.Context, w *simulation.World) error {
		src := newNumbers(fetch.SourceOptions{Inline: true})
		memo := fetch.NewMemo("next", func(ctx context.Context, k int) (int, error) { return src.Get(ctx, k+1) })
		ended := 0
		for range 3 {
			if err := w.Node("server").Go(func() {
				err := fetch.Run(ctx, func(ctx context.Context) error {
					vs, err := fetch.Map(ctx, []int{1, 2, 3}, memo.Get)
					require.Equal(t, []int{4, 6, 8}, vs)
					fetchtest.AssertRounds(t, fetch.Of(ctx), 1)
					return err
				}, fetch.Options{})
				require.NoError(t, err)
				ended++
			}); err != nil {
				return err
			}
		}
		err := suspend.Sleep(ctx, time.Minute)
		require.Equal(t, 3, ended)
		require.Equal(t, [][]int{{2, 3, 4}, {2, 3, 4}, {2, 3, 4}}, src.Batches())
		return err
	}, simulation.TestOptions{Seeds: 20})
}
