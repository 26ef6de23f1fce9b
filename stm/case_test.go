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

// These tests are about the cost of a case, and about long cases, which must not starve.

// A disturber has two writers. Its method disturb returns once both have committed after the call, or wait for the elder.
type disturber struct {
	vars    []stm.Var[int]
	commits [2]atomic.Int64
	done    atomic.Bool
	writers sync.WaitGroup
}

func newDisturber(n int) *disturber {
	d := &disturber{vars: make([]stm.Var[int], n)}
	for w := range d.commits {
		d.writers.Go(func() {
			for !d.done.Load() {
				_ = stm.Atomically(bg, add(&d.vars[w], 1))
				d.commits[w].Add(1)
				runtime.Gosched() // otherwise the long case waits for the end of a time slice
			}
		})
	}
	return d
}

func (d *disturber) disturb() {
	for w := range d.commits {
		for n := d.commits[w].Load(); d.commits[w].Load() < n+2 && stm.Younger() < len(d.commits); {
			runtime.Gosched()
		}
	}
}

func (d *disturber) end() {
	d.done.Store(true)
	d.writers.Wait()
}

// A case reads 10,000 Vars while two writers commit, and is performed by its eleventh run at the latest.
func TestALongCaseDoesNotStarve(t *testing.T) {
	require.Equal(t, 10, stm.Patience, "as the docs say")
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		d, never := newDisturber(1000), chanx.New[int](0)
		schedtest.Run(t, s, func() {
			for range 2 {
				runs := 0
				long := suspend.CaseOf(stm.Op(func(tx *stm.Tx) (sum int, _ error) {
					if runs++; runs > stm.Patience+1 {
						return 0, errOops
					}
					for i := range d.vars {
						if i == len(d.vars)/2 {
							d.disturb()
						}
						sum += d.vars[i].Get(tx)
					}
					d.vars[0].Set(tx, d.vars[0].Get(tx))
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
		d.end()
	})
}

// The failed runs of a case that is kept are counted over several Selects, in which another case wins. So it fails ten times at most.
func TestAKeptCaseDoesNotStarve(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		d, ready := newDisturber(3), chanx.New[int](1)
		schedtest.Run(t, s, func() {
			for range 3 {
				kept := suspend.CaseOf(stm.Op(func(tx *stm.Tx) (int, error) {
					first := d.vars[0].Get(tx)
					d.disturb()
					d.vars[2].Set(tx, first)
					return first, nil
				}))
				before, others := stm.ReadStats().Conflicts, 0
				for {
					ready.TrySend(1)
					won, err := suspend.Select(bg, kept, suspend.CaseOf(ready.RecvOp()))
					require.NoError(t, err)
					if won == suspend.Selectable(kept) {
						break
					}
					others++
				}
				require.EqualValues(t, stm.Patience, stm.ReadStats().Conflicts-before, "after %d Selects that another case has won", others)
			}
		})
		d.end()
	})
}
