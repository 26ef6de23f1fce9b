package linear_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/internal/testrig/stress"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
)

// The histories are those of tasks on four nodes, with timeouts in virtual time.
func TestHistoriesInASimulation(t *testing.T) {
	for _, o := range objects {
		t.Run(o.name, func(t *testing.T) {
			defer schedtest.Within(t, schedtest.Deadline)()
			simulation.Test(t, func(ctx context.Context, w *simulation.World) error {
				h := newHistory(o, stress.Of())
				use := o.anew()
				err := scope.Run(ctx, func(ctx context.Context, s *scope.Scope) error {
					for client := range clients {
						rng := rand.New(rand.NewPCG(w.Seed(), uint64(client)+1))
						node := w.Node(string(rune('a' + client)))
						s.Go(node, func(ctx context.Context) error {
							for range each {
								ctx, end := cancel.WithTimeout(ctx, time.Duration(1+rng.IntN(20))*time.Millisecond)
								use(h, client, ctx, rng)
								end()
								_ = suspend.Sleep(context.Background(), time.Duration(rng.IntN(10))*time.Millisecond)
							}
							return nil
						})
					}
					return nil
				})
				if err != nil {
					return err
				}
				return h.Check()
			}, simulation.TestOptions{})
		})
	}
}
