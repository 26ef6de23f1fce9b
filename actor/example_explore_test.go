package actor_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
)

// A Buy requests the last ticket.
type Buy struct{ actor.Request[bool] }

// Explore runs two buyers of one ticket in all orders, and lets one of them give up at any time.
func Example_explore() {
	outcomes := map[string]bool{}
	suspendtest.Explore(quiet{}, func(w *suspendtest.World) {
		var desk promise.Promise[actor.Ref[*Buy]]
		w.Go("desk", func(context.Context) { // a task of the run, whose scheduler is suspend.Here
			tickets := 1
			desk.Fill(actor.Spawn(context.Background(), suspend.Here(), func(_ context.Context, self *actor.Self[*Buy]) error {
				return actor.Loop(func() error {
					return self.React(func(b *Buy) error {
						if tickets > 0 && b.Reply(true) { // Reply returns false if the buyer has given up
							tickets--
						}
						b.Reply(false)
						return nil
					})
				})
			}, actor.Options[*Buy]{}))
		})
		sold := map[string]bool{}
		for _, name := range []string{"Ann", "Bob"} {
			w.Go(name, func(ctx context.Context) {
				ref, _ := desk.Await(context.Background())
				ok, err := actor.Ask(ctx, ref, &Buy{})
				sold[name] = ok && err == nil
			})
		}
		w.Check(func() error {
			if sold["Ann"] && sold["Bob"] {
				return fmt.Errorf("one ticket, sold twice")
			}
			outcomes[fmt.Sprintf("Ann: %-5t  Bob: %t", sold["Ann"], sold["Bob"])] = true
			return nil
		})
	}, suspendtest.ExploreOptions{})
	for _, o := range slices.Sorted(maps.Keys(outcomes)) {
		fmt.Println(o)
	}
	// Output:
	// Ann: false  Bob: false
	// Ann: false  Bob: true
	// Ann: true   Bob: false
}

// A quiet prints the failures of a test, in place of a *testing.T.
type quiet struct{ testing.TB }

func (quiet) Helper()                           {}
func (quiet) Logf(string, ...any)               {}
func (quiet) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
