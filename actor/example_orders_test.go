package actor_test

import (
	"context"
	"fmt"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/suspend"
)

type (
	order  struct{ item string }
	cancel struct{ item string }
)

// The first program of the paper handles orders and cancellations. Cancellations that have arrived are handled before any order,
// by a receive that does not wait. Each order is acknowledged to its sender.
func Example_ordersAndCancellations() {
	office := func(out actor.Ref[string]) func(context.Context, *actor.Self[any]) error {
		return func(ctx context.Context, self *actor.Self[any]) error {
			cancelled := map[string]bool{}
			for {
				err := self.HandleWithin(ctx, 0, actor.Only[cancel, any](func(c cancel) error {
					cancelled[c.item] = true
					return out.Send("cancelled " + c.item)
				}))
				if err == nil {
					continue // looks for another one
				}
				if err != actor.ErrTimeout {
					return err
				}
				err = self.Handle(ctx, func(m any) error {
					if o, ok := m.(order); ok && !cancelled[o.item] {
						return out.Send("shipped " + o.item)
					}
					return nil // the order was cancelled, or a cancellation has just arrived
				})
				if err != nil {
					return err
				}
			}
		}
	}

	_ = fifo.Run(context.Background(), func(ctx context.Context) error {
		replies := actor.Open[string](ctx, actor.Options[string]{})
		defer replies.Close()
		ref := actor.Spawn(ctx, suspend.Here(), office(replies.Ref()), actor.Options[any]{})
		for _, m := range []any{order{"book"}, order{"lamp"}, order{"pen"}, cancel{"lamp"}} {
			_ = ref.Send(m)
		}
		for range 3 {
			fmt.Println(replies.Receive(ctx))
		}
		ref.Stop()
		return ref.Wait(ctx)
	})
	// Output:
	// cancelled lamp <nil>
	// shipped book <nil>
	// shipped pen <nil>
}
