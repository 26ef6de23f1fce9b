package stm_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

func takeOp(v *stm.Var[int]) suspend.Op[int] {
	return stm.Op(func(tx *stm.Tx) (int, error) { return v.Get(tx), take(v)(tx) })
}

// Exactly one case of a Select takes effect.
func TestSelectPerformsOneCase(t *testing.T) {
	on(t, func(t *testing.T) {
		x, y, log := stm.NewVar(1), stm.NewVar(1), new(stm.Var[int])
		c := chanx.New[int](1)
		_, _ = c.TrySend(1)
		for range 3 {
			op := func(v *stm.Var[int]) *suspend.Case[int] {
				return suspend.CaseOf(stm.Op(func(tx *stm.Tx) (int, error) {
					log.Set(tx, log.Get(tx)+1)
					tx.AfterCommit(func() { require.Equal(t, 0, v.Load()) })
					return 7, take(v)(tx)
				}))
			}
			a, b, recv := op(x), op(y), suspend.CaseOf(c.RecvOp())
			won, err := suspend.Select(bg, a, b, recv)
			require.NoError(t, err)
			if won != recv {
				require.Equal(t, 7, won.(*suspend.Case[int]).Value())
			}
		}
		require.Equal(t, []int{0, 0, 0, 2}, []int{x.Load(), y.Load(), c.Len(), log.Load()})
		won, err := suspend.TrySelect(bg, suspend.CaseOf(takeOp(x)), suspend.CaseOf(c.RecvOp()))
		require.NoError(t, err)
		require.Nil(t, won)
		require.Zero(t, x.Linked())
	})
}

// A waiting case looks again when one of its Vars changes. It may be used again later.
func TestSelectWaitsForAChange(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		var x stm.Var[int]
		c := chanx.New[int](0)
		const rounds = 20
		order, quit := make(chan string, 2*rounds), chanx.New[int](0)
		schedtest.Run(t, s, func() {
			tx, recv, end := suspend.CaseOf(takeOp(&x)), suspend.CaseOf(c.RecvOp()), suspend.CaseOf(quit.RecvOp())
			for {
				switch won, err := suspend.Select(bg, tx, recv, end); won {
				case tx:
					require.Equal(t, 2, tx.Value())
					require.NoError(t, stm.Atomically(bg, add(&x, -1)))
					order <- "tx"
				case recv:
					order <- "recv"
				default:
					require.NoError(t, err)
					return
				}
			}
		}, func() {
			for range rounds {
				schedtest.Eventually(t, "waits", func() bool { return x.Linked() == 1 })
				require.NoError(t, stm.Atomically(bg, add(&x, 2)))
				schedtest.Eventually(t, "taken", func() bool { return x.Load() == 0 })
				require.NoError(t, c.Send(bg, 1))
			}
			require.NoError(t, quit.Send(bg, 1))
		})
		require.Len(t, order, 2*rounds)
		require.Zero(t, x.Linked())
	})
}

// An error of f is the result of the case, and the case has no effect.
func TestSelectOfATransactionThatFails(t *testing.T) {
	on(t, func(t *testing.T) {
		var x stm.Var[int]
		never := suspend.CaseOf(chanx.New[int](0).RecvOp())
		fails := suspend.CaseOf(stm.Op(func(tx *stm.Tx) (int, error) {
			x.Set(tx, 1)
			tx.AfterCommit(func() { t.Error("called") })
			return 5, errOops
		}))
		won, err := suspend.Select(bg, never, fails)
		require.NoError(t, err)
		require.Equal(t, suspend.Selectable(fails), won)
		v, err := fails.Result()
		require.Equal(t, errOops, err)
		require.Zero(t, v)

		require.Zero(t, x.Load())
	})
}

func TestSelectOfATransactionIsCancelled(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		var x stm.Var[int]
		ctx, cancel := context.WithCancel(bg)
		schedtest.Run(t, s, func() {
			won, err := suspend.Select(ctx, suspend.CaseOf(takeOp(&x)), suspend.CaseOf(chanx.New[int](0).RecvOp()))
			require.Nil(t, won)
			require.ErrorIs(t, err, context.Canceled)
			require.Zero(t, x.Linked())
			_, err = suspend.Do(ctx, stm.Op(func(*stm.Tx) (int, error) { panic("f runs") }))
			require.ErrorIs(t, err, context.Canceled)
		}, func() {
			schedtest.Eventually(t, "waits", func() bool { return x.Linked() == 1 })
			cancel()
		})
	})
}

func TestOpMisused(t *testing.T) {
	on(t, func(t *testing.T) {
		var x stm.Var[int]
		_ = x.Load()
		schedtest.Panics(t, "stm: Retry in a transaction that has read no Var", func() {
			_, _ = suspend.Do(bg, stm.Op(func(*stm.Tx) (int, error) { return 0, stm.Retry }))
		})
		schedtest.Panics(t, "stm: transaction inside a transaction", func() {
			_ = stm.Atomically(bg, func(*stm.Tx) error { _, err := suspend.Do(bg, takeOp(&x)); return err })
		})
		schedtest.Panics(t, "stm: a transaction must not suspend", func() {
			_, _ = suspend.Do(bg, stm.Op(func(*stm.Tx) (int, error) { return chanx.New[int](0).Recv(bg) }))
		})
		schedtest.Panics(t, "ouch", func() {
			_, _ = suspend.Do(bg, stm.Op(func(tx *stm.Tx) (int, error) { x.Set(tx, 1); panic("ouch") }))
		})
		require.Zero(t, x.Load())
	})
}

// With Then, f runs first on the caller and then on the executor. The functions of AfterCommit run before k.
func TestThenOfATransaction(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		executor, ok := suspend.As[suspend.Executor](s)
		require.True(t, ok)
		var x stm.Var[int]
		order := make(chan string, 10)
		schedtest.Run(t, s, func() {
			suspend.Then(bg, stm.Op(func(tx *stm.Tx) (int, error) {
				tx.AfterCommit(func() { order <- "hook" })
				order <- "run"
				return x.Get(tx), take(&x)(tx)
			}), executor, func(v int, err error) {
				require.NoError(t, err)
				require.Equal(t, 3, v)
				order <- "k"
			})
			order <- "waits"
			require.NoError(t, stm.Atomically(bg, add(&x, 3)))
		})
		for _, want := range []string{"run", "waits", "run", "hook", "k"} {
			require.Equal(t, want, <-order)
		}
		require.Equal(t, 2, x.Load())
	})
}

// A case waits while there is an elder. Another case may win meanwhile.
func TestACaseWaitsForTheElder(t *testing.T) {
	on(t, func(t *testing.T) {
		var x, other stm.Var[int]
		c := chanx.New[int](1)
		runs := 0
		tx, recv := suspend.CaseOf(stm.Op(func(tx *stm.Tx) (int, error) { return 0, add(&other, 1)(tx) })), suspend.CaseOf(c.RecvOp())
		require.NoError(t, stm.Atomically(bg, func(e *stm.Tx) error {
			n := x.Get(e)
			if runs++; runs <= stm.Patience {
				quicker(add(&x, 1))
			} else {
				suspend.Bind(sched.NewThread(), func() { // as if on another task
					won, err := suspend.TrySelect(bg, tx)
					require.NoError(t, err)
					require.Nil(t, won)
					_, _ = c.TrySend(1)
					won, err = suspend.SelectOrdered(bg, tx, recv)
					require.NoError(t, err)
					require.Equal(t, suspend.Selectable(recv), won)
				})
			}
			x.Set(e, n)
			return nil
		}))
		won, err := suspend.SelectOrdered(bg, tx, recv)
		require.NoError(t, err)
		require.Equal(t, suspend.Selectable(tx), won)
		require.Equal(t, 1, other.Load())
	})
}
