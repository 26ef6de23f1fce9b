package stm_test

import (
	"errors"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/stm"
)

// A step is a step of a random transaction: a Get, a Set, Sets of all Vars from a given one on, a Nested or an OrElse with
// branches, or an end.
type step struct {
	kind     string
	at, to   int
	branches [][]step
}

func steps(depth, vars int) *rapid.Generator[[]step] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		kinds := []string{"get", "set", "set", "set", "hook", "fill"}
		if depth > 0 {
			kinds = append(kinds, "nested", "orelse", "orelse", "ignored")
		}
		if rapid.IntRange(0, 9).Draw(t, "end") == 0 {
			return step{kind: rapid.SampledFrom([]string{"retry", "error"}).Draw(t, "kind")}
		}
		s := step{kind: rapid.SampledFrom(kinds).Draw(t, "kind"), at: rapid.IntRange(0, vars-1).Draw(t, "at"), to: rapid.IntRange(1, 1000).Draw(t, "to")}
		switch s.kind {
		case "nested", "ignored":
			s.branches = [][]step{steps(depth-1, vars).Draw(t, "branch")}
		case "orelse":
			s.branches = rapid.SliceOfN(steps(depth-1, vars), 0, 3).Draw(t, "branches")
		}
		return s
	}), 0, 12)
}

// A state is the model of a Tx.
type state struct {
	values map[int]int
	hooks  []int
}

func (s state) copy() state { return state{maps.Clone(s.values), append([]int(nil), s.hooks...)} }

// model performs steps on the n variables of s, and appends the values that it reads to got.
func model(n int, s *state, steps []step, got *[]int) error {
	nested := func(steps []step) error {
		c := s.copy()
		err := model(n, &c, steps, got)
		if err == nil {
			*s = c
		}
		return err
	}
	for _, x := range steps {
		var err error
		switch x.kind {
		case "get":
			*got = append(*got, s.values[x.at])
		case "set":
			s.values[x.at] = x.to
		case "fill":
			for i := x.at; i < n; i++ {
				s.values[i] = x.to + i
			}
		case "hook":
			s.hooks = append(s.hooks, x.to)
		case "retry":
			err = stm.Retry
		case "error":
			err = errOops
		case "nested":
			err = nested(x.branches[0])
		case "ignored":
			_ = nested(x.branches[0])
		case "orelse":
			err = stm.Retry
			for _, b := range x.branches {
				if err = nested(b); !errors.Is(err, stm.Retry) {
					break
				}
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// real performs the same steps in a transaction.
func real(tx *stm.Tx, vars []stm.Var[int], steps []step, got, called *[]int) error {
	var branches []func(tx *stm.Tx) error
	for _, x := range steps {
		branches = branches[:0]
		for _, b := range x.branches {
			branches = append(branches, func(tx *stm.Tx) error { return real(tx, vars, b, got, called) })
		}
		var err error
		switch x.kind {
		case "get":
			*got = append(*got, vars[x.at].Get(tx))
		case "set":
			vars[x.at].Set(tx, x.to)
		case "fill":
			for i := x.at; i < len(vars); i++ {
				vars[i].Set(tx, x.to+i)
			}
		case "hook":
			tx.AfterCommit(func() { *called = append(*called, x.to) })
		case "retry":
			err = stm.Retry
		case "error":
			err = errOops
		case "nested":
			err = stm.Nested(tx, branches[0])
		case "ignored":
			_ = stm.Nested(tx, branches[0])
		case "orelse":
			err = stm.OrElse(tx, branches...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Random transactions have the same results as a model that copies maps, with few writes and with many.
func TestLogsAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.SampledFrom([]int{3, 2 * stm.Few}).Draw(rt, "vars")
		vars, s := make([]stm.Var[int], n), state{values: map[int]int{}}
		for range rapid.IntRange(1, 4).Draw(rt, "transactions") {
			program := steps(3, n).Draw(rt, "steps")
			var want, got, called []int
			after := s.copy()
			err := model(n, &after, program, &want)
			ok, gotErr := stm.Try(func(tx *stm.Tx) error {
				got, called = nil, nil
				return real(tx, vars, program, &got, &called)
			})
			require.Equal(rt, want, got)
			require.Equal(rt, err == nil, ok)
			if err == errOops {
				require.Equal(rt, err, gotErr)
			}
			if err == nil {
				require.Equal(rt, after.hooks, called)
				s.values = after.values
			} else {
				require.Empty(rt, called)
			}
			for i := range vars {
				require.Equal(rt, s.values[i], vars[i].Load())
			}
		}
	})
}

// If the panic of a Nested is recovered, its writes have no effect.
func TestNestedThatPanics(t *testing.T) {
	var x, y stm.Var[int]
	require.NoError(t, stm.Atomically(bg, func(tx *stm.Tx) error {
		x.Set(tx, 1)
		schedtest.Panics(t, "ouch", func() {
			_ = stm.Nested(tx, func(tx *stm.Tx) error {
				x.Set(tx, 2)
				y.Set(tx, 2)
				tx.AfterCommit(func() { t.Error("the function of a Nested that has failed is called") })
				panic("ouch")
			})
		})
		return nil
	}))
	require.Equal(t, []int{1, 0}, []int{x.Load(), y.Load()})
}

// Functions of AfterCommit run after the commit, in order. They may suspend, and may run transactions.
func TestAfterCommit(t *testing.T) {
	on(t, func(t *testing.T) {
		var v stm.Var[int]
		one := stm.NewVar(1)
		var order []int
		runs := 0
		require.NoError(t, stm.Atomically(bg, func(tx *stm.Tx) error {
			n := v.Get(tx)
			if runs++; runs == 1 {
				quicker(add(&v, 1))
			}
			v.Set(tx, n+1)
			for i := range 3 {
				tx.AfterCommit(func() {
					require.Equal(t, 2+i, v.Load())
					require.NoError(t, stm.Atomically(bg, add(&v, 1)))
					require.NoError(t, stm.Atomically(bg, take(one)))
					require.NoError(t, stm.Atomically(bg, add(one, 1)))
					order = append(order, i)
				})
			}
			return nil
		}))
		require.Equal(t, []int{0, 1, 2}, order)
		require.Equal(t, 2, runs)
		require.Equal(t, 5, v.Load())

		require.Error(t, stm.Atomically(bg, func(tx *stm.Tx) error {
			tx.AfterCommit(func() { t.Error("called") })
			return errOops
		}))
	})
}
