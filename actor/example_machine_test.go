package actor_test

import (
	"context"
	"fmt"
	"github.com/braidgo/braid/suspend"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/fifo"
)

// A turnstile is a state machine. Each state is a function that reacts, and returns the function of the next state. Variables of
// the body belong to all states.
func Example_stateMachine() {
	type Coin struct{}
	type Push struct{ actor.Request[bool] }

	turnstile := func(_ context.Context, self *actor.Self[any]) error {
		passed := 0
		var locked, unlocked func() error
		locked = func() error {
			return self.React(func(m any) error {
				switch m := m.(type) {
				case Coin:
					return unlocked()
				case *Push:
					m.Reply(false)
				}
				return locked()
			})
		}
		unlocked = func() error {
			return self.React(func(m any) error {
				switch m := m.(type) {
				case *Push:
					passed++
					m.Reply(true)
					return locked()
				}
				return unlocked()
			})
		}
		self.OnEnd(func() { fmt.Println("passed:", passed) })
		return locked()
	}

	_ = fifo.Run(context.Background(), func(ctx context.Context) error {
		ref := actor.Spawn(ctx, suspend.Here(), turnstile, actor.Options[any]{})
		for _, coins := range []int{0, 1, 0, 2, 0} {
			for range coins {
				_ = ref.Send(Coin{})
			}
			fmt.Println(actor.Ask(ctx, ref, &Push{}))
		}
		ref.Stop()
		return ref.Wait(ctx)
	})
	// Output:
	// false <nil>
	// true <nil>
	// false <nil>
	// true <nil>
	// false <nil>
	// passed: 2
}
