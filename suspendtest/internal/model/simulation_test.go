package model_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/model"
	"github.com/stretchr/testify/require"
)

// In a World, too, the programs have the results of the models, and the same results each time. When all tasks wait, the World
// moves its clock.
func TestAgainstModelsInASimulation(t *testing.T) {
	defer schedtest.Within(t, 3*schedtest.Deadline)()
	each := 50
	if testing.Short() || schedtest.Race {
		each = 30
	}
	for _, spec := range model.All {
		t.Run(spec.Name, func(t *testing.T) {
			simulation.Test(t, func(ctx context.Context, w *simulation.World) error {
				p := spec.Random(rand.New(rand.NewPCG(w.Seed(), 1)))
				return p.Run(model.Place{
					On: w, Then: w, Turn: func() bool { suspend.Yield(); return true }, Patience: time.Hour,
					Rest: func() { require.NoError(t, suspend.Sleep(ctx, time.Nanosecond)) },
				})
			}, simulation.TestOptions{Seeds: each, Options: simulation.Options{Bubble: true}})
		})
	}
}
