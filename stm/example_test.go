package stm_test

import (
	"context"
	"fmt"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
)

// A withdrawal waits until the account has enough.
func ExampleAtomically() {
	var account, cash stm.Var[int]
	_ = fifo.Run(context.Background(), func(ctx context.Context) error {
		_ = suspend.Here().Go(func() {
			_ = stm.Atomically(ctx, func(tx *stm.Tx) error {
				account.Set(tx, account.Get(tx)+100)
				return nil
			})
		})
		return stm.Atomically(ctx, func(tx *stm.Tx) error {
			if account.Get(tx) < 70 {
				return stm.Retry // suspends until account changes
			}
			account.Set(tx, account.Get(tx)-70)
			cash.Set(tx, cash.Get(tx)+70)
			return nil
		})
	})
	fmt.Println(account.Load(), cash.Load())
	// Output: 30 70
}

// The money may come from either of two accounts.
func ExampleOrElse() {
	current, savings := stm.NewVar(20), stm.NewVar(500)
	withdraw := func(from *stm.Var[int], n int) func(tx *stm.Tx) error {
		return func(tx *stm.Tx) error {
			if from.Get(tx) < n {
				return stm.Retry
			}
			from.Set(tx, from.Get(tx)-n)
			return nil
		}
	}
	err := stm.Atomically(context.Background(), func(tx *stm.Tx) error {
		return stm.OrElse(tx, withdraw(current, 70), withdraw(savings, 70))
	})
	fmt.Println(current.Load(), savings.Load(), err)
	// Output: 20 430 <nil>
}

// AfterCommit delays side effects until the commit.
func ExampleTx_AfterCommit() {
	v := stm.NewVar(1)
	_ = stm.Atomically(context.Background(), func(tx *stm.Tx) error {
		n := v.Get(tx)
		v.Set(tx, n+1)
		tx.AfterCommit(func() { fmt.Println("it was", n) })
		return nil
	})
	// Output: it was 1
}
