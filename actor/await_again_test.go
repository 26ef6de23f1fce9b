package actor_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
)

// An Await of a transaction goes on when the transaction commits, however often a Var that it has read changed before.
func TestAwaitOfATransaction(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
		var v stm.Var[int]
		got := 0
		schedtest.Run(t, on, func() {
			ref := actor.Spawn(bg, on, func(_ context.Context, self *actor.Self[int]) error {
				return actor.Await(self, stm.Op(func(tx *stm.Tx) (int, error) {
					if n := v.Get(tx); n == 3 {
						return n, nil
					}
					return 0, stm.Retry
				}), func(n int, err error) error { got = n; return err })
			})
			for i := range 3 {
				for range 5 {
					suspend.Yield()
				}
				require.NoError(t, stm.Atomically(bg, func(tx *stm.Tx) error { v.Set(tx, i+1); return nil }))
			}
			require.NoError(t, ref.Wait(bg))
			require.Equal(t, 3, got)
		})
	})
}
