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

// Buy asks for the last ticket.
type Buy struct{ actor.Request[bool] }

// All orders of two buyers of one ticket, and all moments at which one of them gives up.
func Example_explore() {
	outcomes := map[string]bool{}
	suspendtest.Explore(quiet{}, func(w *suspendtest.World) {
		var desk promise.Promise[actor.Ref[*Buy]]
		w.Go("desk", func(context.Context) { // a task of the run, whose scheduler is suspend.Here
			tickets := 1
			desk.Fill(actor.Spawn(context.Background(), suspend.Here(), func(_ context.Context, self *actor.Self[*Buy]) error {
				return actor.Loop(func() error {
					return self.React(func(b *Buy) error {
						if tickets > 0 && b.Reply(true) { // false: the buyer has given up
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

// A quiet test stands in for the *testing.T of a test. It prints failures.
type quiet struct{ testing.TB }

func (quiet) Helper()                           {}
func (quiet) Logf(string, ...any)               {}
func (quiet) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
