package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/stm"
)

// A gate lets a given number of helpers pass each time it is operated.
type gate struct{ room stm.Var[int] }

func (g *gate) pass(ctx context.Context) error {
	return stm.Atomically(ctx, func(tx *stm.Tx) error {
		n := g.room.Get(tx)
		if n == 0 {
			return stm.Retry
		}
		g.room.Set(tx, n-1)
		return nil
	})
}

// operate opens g for n helpers, and waits until they have passed.
func (g *gate) operate(ctx context.Context, n int) error {
	if err := stm.Atomically(ctx, func(tx *stm.Tx) error { g.room.Set(tx, n); return nil }); err != nil {
		return err
	}
	return stm.Atomically(ctx, func(tx *stm.Tx) error {
		if g.room.Get(tx) > 0 {
			return stm.Retry
		}
		return nil
	})
}

// A group gathers helpers into parties of equal size. Each full party gets two new gates, so that parties do not mix.
type group struct {
	task   string
	size   int
	joined stm.Var[int]
	gates  *stm.Var[gates]
}

type gates struct{ in, out *gate }

func newGroup(task string, size int) *group {
	return &group{task: task, size: size, gates: stm.NewVar(gates{new(gate), new(gate)})}
}

// help runs one round of a helper: the helper joins a party, passes the first gate, works, and passes the second gate.
func (g *group) help(ctx context.Context, work func()) error {
	party, err := stm.Do(ctx, func(tx *stm.Tx) (gates, error) {
		n := g.joined.Get(tx)
		if n == g.size {
			return gates{}, stm.Retry
		}
		g.joined.Set(tx, n+1)
		return g.gates.Get(tx), nil
	})
	if err != nil {
		return err
	}
	if err := party.in.pass(ctx); err != nil {
		return err
	}
	work()
	return party.out.pass(ctx)
}

// await returns a transaction that waits for a full party, stores its gates in *party, and prepares the next party.
func (g *group) await(party *gates) func(tx *stm.Tx) error {
	return func(tx *stm.Tx) error {
		if g.joined.Get(tx) < g.size {
			return stm.Retry
		}
		*party = g.gates.Get(tx)
		g.joined.Set(tx, 0)
		g.gates.Set(tx, gates{new(gate), new(gate)})
		return nil
	}
}

// santa solves the Santa Claus problem (Trono, 1994), following "Beautiful concurrency" (Peyton Jones, 2007). Santa sleeps until nine
// reindeer are back or three elves want to see him. The reindeer have priority over the elves.
func santa(pool *workstealing.Pool) {
	const years, meetings = 3, 6
	reindeer, elves := newGroup("deliver toys", 9), newGroup("meet in my study", 3)
	var toys, questions atomic.Int32
	err := scope.Run(context.Background(), func(ctx context.Context, s *scope.Scope) error {
		helpers := func(n, rounds int, g *group, count *atomic.Int32) {
			for range n {
				s.Go(pool, func(ctx context.Context) error {
					for range rounds {
						if err := g.help(ctx, func() { count.Add(1) }); err != nil {
							return err
						}
					}
					return nil
				})
			}
		}
		helpers(9, years, reindeer, &toys)
		helpers(3*meetings, 1, elves, &questions) // an elf with two rounds might be alone in its last party
		for range years + meetings {              // this is Santa's own loop
			var g *group
			var party gates
			if err := stm.Atomically(ctx, func(tx *stm.Tx) error {
				g = reindeer
				return stm.OrElse(tx, reindeer.await(&party), func(tx *stm.Tx) error {
					g = elves
					return elves.await(&party)(tx)
				})
			}); err != nil {
				return err
			}
			if err := party.in.operate(ctx, g.size); err != nil {
				return err
			}
			if err := party.out.operate(ctx, g.size); err != nil {
				return err
			}
		}
		return nil
	})
	fmt.Println(toys.Load(), "toys,", questions.Load(), "questions,", err)
}
