package model_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/random"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/model"
	"pgregory.net/rapid"
)

var bg = context.Background()

// onRandom runs a program on the adversary, which knows when all tasks wait.
func onRandom(p *model.Program, seed uint64, seen map[string]int) (err error) {
	outer, s := fifo.New(fifo.Options{}), random.New(random.Options{Seed: seed})
	_ = outer.Run(bg, func(context.Context) error {
		return s.Run(bg, func(context.Context) error {
			err = p.Run(model.Place{
				On: s, Then: s, Seen: seen, Turn: func() bool { suspend.Yield(); return true }, Patience: 2 * time.Second,
				Rest: func() {
					_, _ = suspend.Suspend(bg, func(r suspend.Resumer[struct{}]) (none struct{}, ok bool) {
						outer.OnIdle(func() { r.Resume(none, nil) })
						return none, false
					})
				},
			})
			return nil
		})
	})
	return err
}

// For random programs, every primitive has the results of its model, in any order of the adversary.
func TestAgainstModels(t *testing.T) {
	for _, spec := range model.All {
		t.Run(spec.Name, func(t *testing.T) {
			defer schedtest.Within(t, schedtest.Deadline)()
			seen := map[string]int{}
			rapid.Check(t, func(rt *rapid.T) {
				choose := func(rt *rapid.T) model.Choose {
					return func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "") }
				}
				p := spec.Program(choose(rt), func(step func(model.Choose) model.Step) []model.Step {
					return rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) model.Step { return step(choose(rt)) }), 1, 30).Draw(rt, "steps")
				})
				seed := rapid.Uint64Min(1).Draw(rt, "seed")
				if err := onRandom(p, seed, seen); err != nil {
					rt.Fatalf("seed %d, %v\n%v", seed, err, p)
				}
			})
			rng := rand.New(rand.NewPCG(1, 1))
			for range 3000 { // until all possible results have occurred
				if len(model.Uncovered(spec, seen)) == 0 {
					break
				}
				p := spec.Random(rng)
				if err := onRandom(p, 1, seen); err != nil {
					t.Fatalf("%v\n%v", err, p)
				}
			}
			for _, what := range model.Uncovered(spec, seen) {
				t.Errorf("uncovered: %s", what)
			}
		})
	}
}
