package actor_test

import (
	"context"
	"fmt"
	"github.com/braidgo/braid/suspend"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/fifo"
)

type tree struct {
	left  *tree
	value int
	right *tree
}

// A next asks a producer for its next value. The reply is nil after the last one.
type next struct{ actor.Request[*int] }

// In the paper's comparison, a coordinator uses producers of two kinds. A producer walks through a tree and returns one value for
// each request. With Receive, it is a recursive function. With React, the rest of the walk is a Next, so the producer has no
// stack while it waits. The coordinator sees no difference.
func Example_producers() {
	receiving := func(t *tree) func(context.Context, *actor.Self[*next]) error {
		return func(ctx context.Context, self *actor.Self[*next]) error {
			var walk func(t *tree) error
			walk = func(t *tree) error {
				if t == nil {
					return nil
				}
				if err := walk(t.left); err != nil {
					return err
				}
				m, err := self.Receive(ctx)
				if err != nil {
					return err
				}
				m.Reply(&t.value)
				return walk(t.right)
			}
			if err := walk(t); err != nil {
				return err
			}
			m, err := self.Receive(ctx)
			if err == nil {
				m.Reply(nil)
			}
			return err
		}
	}

	reacting := func(t *tree) func(context.Context, *actor.Self[*next]) error {
		return func(_ context.Context, self *actor.Self[*next]) error {
			produce := func(v *int) error {
				return self.React(func(m *next) error { m.Reply(v); return nil })
			}
			var walk func(t *tree) error
			walk = func(t *tree) error {
				if t == nil {
					return nil
				}
				return actor.AndThen(walk(t.left), func() error {
					return actor.AndThen(produce(&t.value), func() error { return walk(t.right) })
				})
			}
			return actor.AndThen(walk(t), func() error { return produce(nil) })
		}
	}

	coordinator := func(producers ...actor.Ref[*next]) func(context.Context, *actor.Self[any]) error {
		return func(ctx context.Context, _ *actor.Self[any]) error {
			for _, p := range producers {
				for {
					v, err := actor.Ask(ctx, p, &next{})
					if err != nil {
						return err
					}
					if v == nil {
						fmt.Println("end")
						break
					}
					fmt.Print(*v, " ")
				}
			}
			return nil
		}
	}

	t := &tree{&tree{nil, 1, &tree{nil, 2, nil}}, 3, &tree{nil, 4, nil}}
	_ = fifo.Run(context.Background(), func(ctx context.Context) error {
		on := suspend.Here()
		a, b := actor.Spawn(ctx, on, receiving(t), actor.Options[*next]{}), actor.Spawn(ctx, on, reacting(t), actor.Options[*next]{})
		return actor.Spawn(ctx, on, coordinator(a, b), actor.Options[any]{}).Wait(ctx)
	})
	// Output:
	// 1 2 3 4 end
	// 1 2 3 4 end
}
