package stm_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/linear"
)

type vars [3]int

// A call is a transaction on three Vars, with its effect on their values and its result.
type call struct {
	name string
	i, j int
}

func (c call) on(v vars) (after vars, got vars, ok bool) {
	got = v
	switch c.name {
	case "add":
		v[c.i]++
	case "move": // waits for one token
		if v[c.i] == 0 {
			return v, got, false
		}
		v[c.i]--
		v[c.j]++
	case "either": // takes from the first Var that has a token
		k := c.i
		if v[k] == 0 {
			k = c.j
		}
		if v[k] == 0 {
			return v, got, false
		}
		v[k]--
	}
	return v, got, true
}

// Transactions run in parallel, on all schedulers, and are cancelled at random. Their results are possible in some sequential
// order, in which the cancelled ones have no effect.
func TestHistoriesAreLinearizable(t *testing.T) {
	const objects, clients, each = 12, 4, 6
	model := linear.Model[vars, call, vars]{Step: func(s vars, in call, out vars) (after vars, possible bool) {
		after, got, ok := in.on(s)
		return after, ok && got == out
	}}
	rounds := 6
	if testing.Short() || schedtest.Race {
		rounds = 2
	}
	var outcomes [2]atomic.Int32 // committed and cancelled transactions
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		for round := range rounds {
			var all sync.WaitGroup
			histories := make([]*linear.History[vars, call, vars], objects)
			for o := range objects {
				vs, history := new([3]stm.Var[int]), model.New()
				histories[o] = history
				for client := range clients {
					rng := rand.New(rand.NewPCG(uint64(round), uint64(o*clients+client)))
					all.Add(1)
					require.NoError(t, next().Go(func() {
						defer all.Done()
						for range each {
							c := call{[]string{"add", "add", "move", "either", "read"}[rng.IntN(5)], rng.IntN(3), rng.IntN(3)}
							ctx, cancel := context.WithTimeout(bg, time.Duration(1+rng.IntN(1000))*time.Microsecond)
							_, err := history.Do(client, c, func() (vars, error) { return transact(ctx, vs, c, rng.IntN(3)) })
							cancel()
							if err != nil {
								outcomes[1].Add(1)
							} else {
								outcomes[0].Add(1)
							}
						}
					}))
				}
			}
			all.Wait()
			for _, h := range histories {
				require.NoError(t, h.Check())
			}
		}
	})
	require.Positive(t, outcomes[0].Load())
	require.Positive(t, outcomes[1].Load())
}

// transact performs c in one of three ways.
func transact(ctx context.Context, vs *[3]stm.Var[int], c call, how int) (vars, error) {
	f := func(tx *stm.Tx) (got vars, err error) {
		for i := range vs {
			got[i] = vs[i].Get(tx)
		}
		takeFrom := func(i int) func(tx *stm.Tx) error { return take(&vs[i]) }
		switch c.name {
		case "add":
			err = add(&vs[c.i], 1)(tx)
		case "move":
			if err = takeFrom(c.i)(tx); err == nil {
				err = add(&vs[c.j], 1)(tx)
			}
		case "either":
			err = stm.OrElse(tx, takeFrom(c.i), takeFrom(c.j))
		}
		return got, err
	}
	switch how {
	case 0:
		return suspend.Do(ctx, stm.Op(f))
	case 1:
		op := stm.Op(f)
		return suspend.Do(ctx, suspend.Choose(op, op))
	}
	return stm.Do(ctx, f)
}
