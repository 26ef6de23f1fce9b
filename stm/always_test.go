package stm_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
)

func notNegative(v *stm.Var[int]) func(tx *stm.Tx) error {
	return func(tx *stm.Tx) error {
		if v.Get(tx) < 0 {
			return errOops
		}
		return nil
	}
}

func TestAlwaysRefusesAViolation(t *testing.T) {
	on(t, func(t *testing.T) {
		var v, w stm.Var[int]
		stop, err := stm.Always(bg, notNegative(&v))
		require.NoError(t, err)
		require.Equal(t, 1, v.Linked())

		var violation *stm.Violation
		err = stm.Atomically(bg, func(tx *stm.Tx) error {
			w.Set(tx, 1)
			tx.AfterCommit(func() { t.Error("called") })
			return add(&v, -1)(tx)
		})
		require.ErrorAs(t, err, &violation)
		require.ErrorIs(t, err, errOops)
		require.Equal(t, "stm: oops", err.Error())
		require.Zero(t, v.Load()+w.Load())
		ok, err := stm.Try(add(&v, -1))
		require.False(t, ok)
		require.ErrorIs(t, err, errOops)

		for range 3 { // it goes on
			require.NoError(t, stm.Atomically(bg, add(&v, 1)))
			require.NoError(t, stm.Atomically(bg, add(&v, -1)))
			require.ErrorIs(t, stm.Atomically(bg, add(&v, -1)), errOops)
			require.Equal(t, 1, v.Linked())
		}
		stop()
		stop()
		require.Zero(t, v.Linked())
		require.NoError(t, stm.Atomically(bg, add(&v, -1)))
	})
}

func TestAlwaysRunsTheInvariantAtOnce(t *testing.T) {
	on(t, func(t *testing.T) {
		v := stm.NewVar(-1)
		stop, err := stm.Always(bg, notNegative(v))
		require.ErrorIs(t, err, errOops)
		require.Zero(t, v.Linked())
		stop()

		runs := 0
		stop, err = stm.Always(bg, func(tx *stm.Tx) error { // again after a conflict
			if runs++; runs == 1 {
				v.Get(tx)
				quicker(func(tx *stm.Tx) error { v.Set(tx, 5); return nil })
				return nil
			}
			return notNegative(v)(tx)
		})
		require.NoError(t, err)
		require.Equal(t, 2, runs)
		stop()
	})
}

func TestAlwaysMisused(t *testing.T) {
	on(t, func(t *testing.T) {
		var v stm.Var[int]
		for text, check := range map[string]func(tx *stm.Tx) error{
			"stm: an invariant that reads nothing":  func(*stm.Tx) error { return nil },
			"stm: Set in an invariant":              func(tx *stm.Tx) error { v.Set(tx, 1); return nil },
			"stm: AfterCommit in an invariant":      func(tx *stm.Tx) error { tx.AfterCommit(func() {}); return nil },
			"stm: a transaction must not suspend":   func(*stm.Tx) error { return suspend.Sleep(bg, 1) },
			"stm: transaction inside a transaction": func(*stm.Tx) error { return stm.Atomically(bg, add(&v, 1)) },
			"ouch":                                  func(*stm.Tx) error { panic("ouch") },
		} {
			schedtest.Panics(t, text, func() { _, _ = stm.Always(bg, check) })
		}
		_, err := stm.Always(bg, func(*stm.Tx) error { return stm.Retry })
		require.ErrorIs(t, err, stm.Retry)
		require.NoError(t, stm.Atomically(bg, add(&v, 1)))
	})
}

// An invariant that panics in the commit of another: that one has written nothing, and holds nothing.
func TestAnInvariantThatPanics(t *testing.T) {
	on(t, func(t *testing.T) {
		var v stm.Var[int]
		stop, err := stm.Always(bg, func(tx *stm.Tx) error {
			if v.Get(tx) == 1 {
				panic("ouch")
			}
			return nil
		})
		require.NoError(t, err)
		schedtest.Panics(t, "ouch", func() { _ = stm.Atomically(bg, add(&v, 1)) })
		require.Zero(t, v.Load())
		require.NoError(t, stm.Atomically(bg, add(&v, 2)))
		stop()
	})
}

// A bank whose sum is an invariant: transfers run against transfers that break it.
func TestAlwaysHoldsUnderStress(t *testing.T) {
	rounds := 300
	if testing.Short() || schedtest.Race {
		rounds = 50
	}
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		accounts := make([]stm.Var[int], 4)
		sum := func(tx *stm.Tx) error {
			n := 0
			for i := range accounts {
				n += accounts[i].Get(tx)
			}
			if n != 0 {
				return errOops
			}
			return nil
		}
		stop, err := stm.Always(bg, sum)
		require.NoError(t, err)
		var mu sync.Mutex
		good, bad := 0, 0
		schedtest.Stress(t, next, 12, func(i int, rng *rand.Rand) {
			for range rounds {
				from, to, n := rng.IntN(4), rng.IntN(4), rng.IntN(2)
				err := stm.Atomically(bg, func(tx *stm.Tx) error {
					accounts[from].Set(tx, accounts[from].Get(tx)-1)
					accounts[to].Set(tx, accounts[to].Get(tx)+1+n)
					return nil
				})
				mu.Lock()
				if err == nil {
					good++
				} else {
					bad++
				}
				mu.Unlock()
				if (err == nil) != (n == 0) || err != nil && !errors.Is(err, errOops) {
					t.Errorf("%d too many: %v", n, err)
				}
				if rng.IntN(8) == 0 {
					ok, err := stm.Try(sum)
					if !ok || err != nil {
						t.Error(ok, err)
					}
				}
			}
		})
		require.Positive(t, good)
		require.Positive(t, bad)
		for i := range accounts {
			require.Equal(t, 1, accounts[i].Linked())
		}
		stop()
	})
}
