package main

import (
	"context"
	"fmt"

	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
)

type fork struct{ taken stm.Var[bool] }

func (f *fork) take(tx *stm.Tx) error {
	if f.taken.Get(tx) {
		return stm.Retry
	}
	f.taken.Set(tx, true)
	return nil
}

func (f *fork) put(tx *stm.Tx) { f.taken.Set(tx, false) }

func dine(ctx context.Context, left, right *fork, meals *stm.Var[int]) error {
	err := stm.Atomically(ctx, func(tx *stm.Tx) error {
		if err := left.take(tx); err != nil {
			return err
		}
		return right.take(tx) // a Retry here also undoes left.take
	})
	if err != nil {
		return err
	}
	suspend.Yield() // the philosopher eats
	return stm.Atomically(ctx, func(tx *stm.Tx) error {
		left.put(tx)
		right.put(tx)
		meals.Set(tx, meals.Get(tx)+1)
		return nil
	})
}

// philosophers runs the dining philosophers. Each philosopher takes both forks at once, or waits until a fork is put back. No philosopher
// waits while holding a fork, so the forks need no order.
func philosophers(pool *workstealing.Pool) {
	const philosophers, rounds = 5, 100
	var forks [philosophers]fork
	var meals stm.Var[int]
	err := scope.Run(context.Background(), func(_ context.Context, s *scope.Scope) error {
		for i := range philosophers {
			s.Go(pool, func(ctx context.Context) error {
				for range rounds {
					if err := dine(ctx, &forks[i], &forks[(i+1)%philosophers], &meals); err != nil {
						return err
					}
				}
				return nil
			})
		}
		return nil
	})
	fmt.Println(meals.Load(), "meals,", err)
}
