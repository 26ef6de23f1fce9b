package stm_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	cancelpkg "github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
)

// A program of transactions has the same steps with the same seed, so a failing seed fails again. Transactions and Selects move
// money between accounts and through a channel, with time limits and contexts that end. No money is lost or created.
func TestASeedRepeatsTransactions(t *testing.T) {
	seeds := uint64(300)
	if testing.Short() || schedtest.Race {
		seeds = 50
	}
	hashes := map[uint64]bool{}
	for seed := uint64(1); seed <= seeds; seed++ {
		var hash [2]uint64
		for i := range hash {
			r := simulation.Run(transfers, simulation.Options{Seed: seed})
			require.NoError(t, r.Err, "seed %d", seed)
			hash[i] = r.Hash
		}
		require.Equal(t, hash[0], hash[1], "seed %d", seed)
		hashes[hash[0]] = true
	}
	require.Greater(t, len(hashes), int(seeds)/2, "most seeds have the same steps")
}

func transfers(ctx context.Context, w *simulation.World) error {
	const accounts, each, tasks = 3, 10, 4
	var all [accounts]*stm.Var[int]
	for i := range all {
		all[i] = stm.NewVar(each)
	}
	post := chanx.New[int](1)
	total := func(tx *stm.Tx) (sum int) {
		for i := range all {
			sum += all[i].Get(tx)
		}
		return sum
	}
	move := func(from, to *stm.Var[int], n int) func(tx *stm.Tx) (int, error) {
		return func(tx *stm.Tx) (int, error) {
			if from.Get(tx) < n {
				return 0, stm.Retry
			}
			from.Set(tx, from.Get(tx)-n)
			to.Set(tx, to.Get(tx)+n)
			tx.AfterCommit(func() { w.Log("moved %d", n) })
			return n, nil
		}
	}
	posted := 0 // the money in the channel
	err := scope.Run(ctx, func(ctx context.Context, s *scope.Scope) error {
		for id := range tasks {
			s.Go(w, func(ctx context.Context) error {
				for range 4 {
					a, b := all[w.Rand().IntN(accounts)], all[w.Rand().IntN(accounts)]
					n := 1 + w.Rand().IntN(2*each)
					limit, end := cancelpkg.WithTimeout(ctx, time.Duration(w.Rand().IntN(1000))*time.Microsecond)
					switch w.Rand().IntN(4) {
					case 0:
						_, err := stm.Do(limit, move(a, b, n))
						w.Log("%d: %v", id, err)
					case 1:
						in, out := suspend.CaseOf(post.RecvOp()), suspend.CaseOf(stm.Op(move(a, b, n)))
						won, err := suspend.Select(limit, in, out, suspend.CaseOf(suspend.After(time.Millisecond)))
						if err == nil && won == in {
							posted -= in.Value()
							err = stm.Atomically(ctx, func(tx *stm.Tx) error { a.Set(tx, a.Get(tx)+in.Value()); return nil })
						}
						w.Log("%d: %v", id, err)
					case 2:
						taken, err := stm.Do(limit, func(tx *stm.Tx) (int, error) {
							err := stm.OrElse(tx, func(tx *stm.Tx) error {
								if a.Get(tx) < n {
									return stm.Retry
								}
								a.Set(tx, a.Get(tx)-n)
								return nil
							}, func(tx *stm.Tx) error { n = 0; return nil })
							return n, err
						})
						if err == nil && taken > 0 {
							posted += taken
							if post.Send(limit, taken) != nil { // puts it back
								posted -= taken
								err = stm.Atomically(ctx, func(tx *stm.Tx) error { a.Set(tx, a.Get(tx)+taken); return nil })
							}
						}
						w.Log("%d: %d %v", id, taken, err)
					default:
						if err := suspend.Sleep(limit, time.Duration(n)*100*time.Microsecond); err != nil && !errors.Is(err, context.DeadlineExceeded) {
							return err
						}
					}
					end()
				}
				return nil
			})
		}
		return nil
	})
	if err != nil {
		return err
	}
	sum, err := stm.Do(ctx, func(tx *stm.Tx) (int, error) { return total(tx), nil })
	if err == nil && sum+posted != accounts*each {
		err = fmt.Errorf("%d on the accounts, %d posted", sum, posted)
	}
	return err
}
