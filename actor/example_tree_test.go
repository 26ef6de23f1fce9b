package actor_test

import (
	"context"
	"errors"
	"fmt"
	"github.com/braidgo/braid/suspend"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/fifo"
)

// A printer has a child for each tray. The first life of the printer fails, and its children end with it. A Stop reaches the
// children after the printer has handled its messages. The printer ends after its children have handled theirs.
func Example_tree() {
	errPaper := errors.New("paper jam")
	tray := func(life, n int) func(context.Context, *actor.Self[string]) error {
		return func(_ context.Context, self *actor.Self[string]) error {
			self.OnEnd(func() { fmt.Printf("life %d: tray %d has ended\n", life, n) })
			return actor.Loop(func() error {
				return self.React(func(page string) error {
					fmt.Printf("life %d: tray %d prints %s\n", life, n, page)
					return nil
				})
			})
		}
	}
	lives := 0
	printer := actor.Restart(actor.Policy{Max: 1}, func(ctx context.Context, self *actor.Self[string]) error {
		lives++
		var trays [2]actor.Ref[string]
		for i := range trays {
			trays[i] = actor.Spawn(ctx, suspend.Here(), tray(lives, i), actor.Options[string]{}) // with the context of this life
		}
		next := 0
		return actor.Loop(func() error {
			return self.React(func(page string) error {
				if page == "" {
					return errPaper
				}
				next++
				return trays[next%2].Send(page)
			})
		})
	})

	_ = fifo.Run(context.Background(), func(ctx context.Context) error {
		ref := actor.Spawn(ctx, suspend.Here(), printer, actor.Options[string]{})
		for _, page := range []string{"", "a", "b", "c"} {
			_ = ref.Send(page)
		}
		ref.Stop()
		return ref.Wait(ctx)
	})
	// Output:
	// life 1: tray 0 has ended
	// life 1: tray 1 has ended
	// life 2: tray 0 prints b
	// life 2: tray 0 has ended
	// life 2: tray 1 prints a
	// life 2: tray 1 prints c
	// life 2: tray 1 has ended
}
