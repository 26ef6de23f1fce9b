package stm_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
)

// In a bubble of testing/synctest, a transaction that waits on a goroutine is durably blocked.
func TestInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var v stm.Var[int]
		taken := 0
		go func() {
			_ = stm.Atomically(bg, take(&v))
			taken++
		}()
		synctest.Wait()
		require.Equal(t, 1, v.Linked())
		require.NoError(t, stm.Atomically(bg, add(&v, 1)))
		synctest.Wait()
		require.Equal(t, 1, taken)

		ctx, cancel := context.WithTimeout(bg, time.Minute)
		defer cancel()
		begun := time.Now()
		require.ErrorIs(t, stm.Atomically(ctx, take(&v)), context.DeadlineExceeded)
		late := suspend.CaseOf(suspend.After(time.Hour))
		won, err := suspend.Select(bg, suspend.CaseOf(takeOp(&v)), late)
		require.NoError(t, err)
		require.Equal(t, suspend.Selectable(late), won)
		require.Equal(t, time.Hour+time.Minute, time.Since(begun))
		require.Zero(t, v.Linked())
	})
}

// Explore can check transactions, and its runs are the same each time.
func TestExplored(t *testing.T) {
	suspendtest.Explore(t, func(w *suspendtest.World) {
		var x, y stm.Var[int]
		moved := 0
		w.Go("move", func(ctx context.Context) {
			if stm.Atomically(ctx, func(tx *stm.Tx) error {
				if err := take(&x)(tx); err != nil {
					return err
				}
				return add(&y, 1)(tx)
			}) == nil {
				moved++
			}
		})
		w.Go("select", func(ctx context.Context) {
			if _, err := suspend.SelectOrdered(ctx, suspend.CaseOf(takeOp(&y)), suspend.CaseOf(takeOp(&x))); err == nil {
				moved += 10
			}
		})
		w.Go("put", func(context.Context) {
			_ = stm.Atomically(bg, add(&x, 1))
			_ = stm.Atomically(bg, add(&x, 1))
		})
		w.Check(func() error {
			if n := x.Load() + y.Load() + moved/10; n != 2 || y.Load() > moved%10 {
				t.Errorf("%d, %d and %d", x.Load(), y.Load(), moved)
			}
			return nil
		})
	}, suspendtest.ExploreOptions{})
}
