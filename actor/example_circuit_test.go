package actor_test

import (
	"context"
	"fmt"
	"github.com/braidgo/braid/suspend"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/fifo"
)

// This program simulates a digital circuit. Each component reacts to the clock. OrElse adds the other reactions of a component,
// for which the paper uses super.reactions.

type (
	tick   struct{ actor.Request[int] } // the reply is the value of the wire after the tick
	setBit struct{ bit int }
	wire   = actor.Ref[any]
)

type component struct {
	self *actor.Self[any]
	out  int
}

// reactions returns the reactions that all components have. compute returns the output of the component at a tick.
func (c *component) reactions(ctx context.Context, compute func() (int, error)) func(any) error {
	return actor.Only[*tick, any](func(t *tick) error {
		v, err := compute()
		c.out = v
		t.Reply(v)
		return err
	})
}

func input(ctx context.Context, self *actor.Self[any]) error {
	c, bit := &component{self: self}, 0
	f := actor.OrElse(
		c.reactions(ctx, func() (int, error) { return bit, nil }),
		actor.Only[setBit, any](func(m setBit) error { bit = m.bit; return nil }))
	return actor.Loop(func() error { return self.React(f) })
}

// A gate asks its inputs while it handles a tick, so its reaction suspends.
func gate(f func(a, b int) int, a, b wire) func(context.Context, *actor.Self[any]) error {
	return func(ctx context.Context, self *actor.Self[any]) error {
		c := &component{self: self}
		react := c.reactions(ctx, func() (int, error) {
			x, err := actor.Ask(ctx, a, &tick{})
			if err != nil {
				return 0, err
			}
			y, err := actor.Ask(ctx, b, &tick{})
			return f(x, y), err
		})
		return actor.Loop(func() error { return self.React(react) })
	}
}

func Example_circuit() {
	_ = fifo.Run(context.Background(), func(ctx context.Context) error {
		on := suspend.Here()
		a, b := actor.Spawn(ctx, on, input, actor.Options[any]{}), actor.Spawn(ctx, on, input, actor.Options[any]{})
		sum := actor.Spawn(ctx, on, gate(func(a, b int) int { return a ^ b }, a, b), actor.Options[any]{})
		carry := actor.Spawn(ctx, on, gate(func(a, b int) int { return a & b }, a, b), actor.Options[any]{})
		for x := range 2 {
			for y := range 2 {
				_, _ = a.Send(setBit{x}), b.Send(setBit{y})
				s, err := actor.Ask(ctx, sum, &tick{})
				if err != nil {
					return err
				}
				c, err := actor.Ask(ctx, carry, &tick{})
				if err != nil {
					return err
				}
				fmt.Println(x, "+", y, "=", 2*c+s)
			}
		}
		for _, w := range []wire{sum, carry, a, b} {
			w.Stop()
		}
		return nil
	})
	// Output:
	// 0 + 0 = 0
	// 0 + 1 = 1
	// 1 + 0 = 1
	// 1 + 1 = 2
}
