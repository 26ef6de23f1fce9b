package actor_test

import (
	"context"
	"fmt"
	"github.com/braidgo/braid/suspend"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/fifo"
)

// A counter is the first actor in most books. Only the actor can access its state, which is a local variable.
func Example_counter() {
	type Increment struct{ by int }
	type Current struct{ actor.Request[int] }

	counter := func(ctx context.Context, self *actor.Self[any]) error {
		value := 0
		for {
			m, err := self.Receive(ctx)
			if err != nil {
				return err
			}
			switch m := m.(type) {
			case Increment:
				value += m.by
			case *Current:
				m.Reply(value)
			}
		}
	}

	_ = fifo.Run(context.Background(), func(ctx context.Context) error {
		ref := actor.Spawn(ctx, suspend.Here(), counter, actor.Options[any]{})
		_ = ref.Send(Increment{2})
		_ = ref.Send(Increment{40})
		v, err := actor.Ask(ctx, ref, &Current{})
		fmt.Println(v, err)
		ref.Stop()
		return ref.Wait(ctx)
	})
	// Output: 42 <nil>
}

// A bounded buffer skips messages that it cannot handle yet. They keep their places in the mailbox.
func Example_boundedBuffer() {
	type Put struct{ v int }
	type Get struct{ actor.Request[int] }

	buffer := func(_ context.Context, self *actor.Self[any]) error {
		const most = 2
		var buf []int
		return actor.Loop(func() error {
			return self.React(func(m any) error {
				switch m := m.(type) {
				case Put:
					if len(buf) == most {
						return actor.Skip // keeps the message for later
					}
					buf = append(buf, m.v)
				case *Get:
					if len(buf) == 0 {
						return actor.Skip
					}
					m.Reply(buf[0])
					buf = buf[1:]
				}
				return nil
			})
		})
	}

	_ = fifo.Run(context.Background(), func(ctx context.Context) error {
		ref := actor.Spawn(ctx, suspend.Here(), buffer, actor.Options[any]{})
		early := actor.AskLater(ref, &Get{})
		for i := range 5 {
			_ = ref.Send(Put{i})
		}
		fmt.Println(early.Await(ctx))
		for range 4 {
			fmt.Println(actor.Ask(ctx, ref, &Get{}))
		}
		ref.Stop()
		return ref.Wait(ctx)
	})
	// Output:
	// 0 <nil>
	// 1 <nil>
	// 2 <nil>
	// 3 <nil>
	// 4 <nil>
}

// In a token ring, each actor waits for the token without a task, and passes it on.
func Example_tokenRing() {
	_ = fifo.Run(context.Background(), func(ctx context.Context) error {
		const n = 1000
		ring := make([]actor.Ref[int], n)
		for i := range ring {
			ring[i] = actor.Spawn(ctx, suspend.Here(), func(_ context.Context, self *actor.Self[int]) error {
				return actor.Loop(func() error {
					return self.React(func(token int) error {
						next := ring[(i+1)%n]
						if token == 0 {
							fmt.Println("the token ends at", i)
							next.Stop()
							return actor.ErrStopped
						}
						return next.Send(token - 1)
					})
				})
			}, actor.Options[int]{})
		}
		_ = ring[0].Send(10_007)
		defer func() {
			for _, r := range ring {
				r.Stop()
			}
		}()
		return ring[7].Wait(ctx)
	})
	// Output: the token ends at 7
}
