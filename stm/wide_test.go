package stm_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
)

// A waiter that has read many Vars is linked to them in portions, and a commit unlinks it only from its own Var. Otherwise it
// would delay all other commits.
func TestAWideWaiterHoldsUpNobody(t *testing.T) {
	const n = 100 * stm.Portion
	last, left, resumed := stm.WaitFor(make([]stm.Var[int], n))
	require.Equal(t, []int{stm.Portion, n - 1, 1}, []int{last, left, resumed})
	last, left, resumed = stm.WaitFor(make([]stm.Var[int], stm.Portion))
	require.Equal(t, []int{stm.Portion, 0, 1}, []int{last, left, resumed})
}

// A waiter that has read many Vars is woken by a commit to any of them, even twice, or before it is linked to all. It leaves
// nothing behind.
func TestWideWaiters(t *testing.T) {
	const n = 4*stm.Portion + 3
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		for _, op := range []bool{false, true} {
			vars := make([]stm.Var[int], n)
			sum := func(want int) func(tx *stm.Tx) (int, error) {
				return func(tx *stm.Tx) (int, error) {
					all := 0
					for i := range vars {
						all += vars[i].Get(tx)
						vars[0].Get(tx)
					}
					if all < want {
						return 0, stm.Retry
					}
					return all, nil
				}
			}
			wait := func(ctx context.Context, want int) (err error) {
				if op {
					other := suspend.Map(stm.Op(sum(1_000_000)), func(x int, err error) (int, error) { return -1, err })
					_, err = suspend.Do(ctx, suspend.Choose(stm.Op(sum(want)), other))
				} else {
					_, err = stm.Do(ctx, sum(want))
				}
				return err
			}
			ctx, cancel := context.WithCancel(bg)
			const steps, waiters = 60, 3
			var at, over atomic.Int32
			fs := []func(){func() {
				require.ErrorIs(t, wait(ctx, 1_000_000), context.Canceled)
			}}
			for range waiters {
				fs = append(fs, func() {
					for step := range steps {
						require.NoError(t, wait(bg, step+1))
						at.Add(1)
					}
					over.Add(1)
				})
			}
			fs = append(fs, func() {
				r := rand.New(rand.NewPCG(1, 2))
				for step := range steps {
					i := []int{0, n - 1, r.IntN(n)}[step%3]
					require.NoError(t, stm.Atomically(bg, add(&vars[i], 1)))
					if step%5 > 0 { // otherwise two commits follow each other
						schedtest.Eventually(t, "all have seen it", func() bool { return int(at.Load()) >= waiters*(step+1) })
					}
				}
				cancel()
			})
			schedtest.Run(t, s, fs...)
			require.EqualValues(t, waiters, over.Load(), fmt.Sprint(op))
			for i := range vars {
				require.Zero(t, vars[i].Linked())
			}
		}
	})
}
