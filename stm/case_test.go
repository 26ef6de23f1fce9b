package stm_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
)

// The cost of a case, and long cases, which do not starve.

// A case reads 10,000 Vars beside two writers, and is performed by its eleventh run at the latest. Each run goes on only once both writers
// have committed since, or wait for the elder.
func TestALongCaseDoesNotStarve(t *testing.T) {
	require.Equal(t, 10, stm.Patience, "as the docs say")
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		vars, never := make([]stm.Var[int], 1000), chanx.New[int](0)
		var commits [2]atomic.Int64
		var done atomic.Bool
		var writers sync.WaitGroup
		for w := range commits {
			writers.Go(func() {
				for !done.Load() {
					_ = stm.Atomically(bg, add(&vars[w], 1))
					commits[w].Add(1)
					runtime.Gosched() // otherwise the long case waits for the end of a time slice
				}
			})
		}
		disturbed := func() {
			for w := range commits {
				for n := commits[w].Load(); commits[w].Load() < n+2 && stm.Younger() < len(commits); {
					runtime.Gosched()
				}
			}
		}
		schedtest.Run(t, s, func() {
			for range 2 {
				runs := 0
				long := suspend.CaseOf(stm.Op(func(tx *stm.Tx) (sum int, _ error) {
					if runs++; runs > stm.Patience+1 {
						return 0, errOops
					}
					for i := range vars {
						if i == len(vars)/2 {
							disturbed()
						}
						sum += vars[i].Get(tx)
					}
					vars[0].Set(tx, vars[0].Get(tx))
					return sum, nil
				}))
				won, err := suspend.Select(bg, long, suspend.CaseOf(never.RecvOp()))
				require.NoError(t, err)
				require.Equal(t, suspend.Selectable(long), won)
				_, err = long.Result()
				require.NoError(t, err)
				require.Equal(t, stm.Patience+1, runs)
			}
		})
		done.Store(true)
		writers.Wait()
	})
}
