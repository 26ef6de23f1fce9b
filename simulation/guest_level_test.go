package simulation_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/simulation"
)

// With the overlay, the seed decides the order of guests, and a second run is the same. Two critical sections that should be one
// lose an update with some seeds. Without the overlay, and without Preempt, no seed shows this.
func TestGuestLevel(t *testing.T) {
	simulation.Calm(t)
	lost := func(o simulation.Options) (bool, string) {
		n := 0
		r := simulation.RunGuests(t, o, func(_ context.Context, w *simulation.World) error {
			var mu sync.Mutex
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					mu.Lock()
					v := n
					mu.Unlock()
					mu.Lock()
					n = v + 1
					mu.Unlock()
				})
			}
			all.Wait()
			return nil
		})
		require.NoError(t, r.Err)
		return n != 3, r.Level
	}
	for _, preempt := range []bool{true, false} {
		times, level := 0, ""
		for seed := range uint64(60) {
			o := simulation.Options{Seed: seed + 1, Preempt: preempt}
			first, l := lost(o)
			again, _ := lost(o)
			require.Equal(t, first, again, seed+1)
			if level = l; first {
				times++
			}
		}
		t.Logf("level %s: %d of 60 seeds lose an update", level, times)
		if level == "D" {
			require.True(t, preempt)
			require.Greater(t, times, 5)
		} else {
			require.Zero(t, times)
			require.True(t, level != "C" || !preempt)
		}
	}
}
