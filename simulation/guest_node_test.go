package simulation_test

import (
	"context"
	"runtime/pprof"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/simulation"
)

// With the overlay, each goroutine that descends from a guest belongs to the guest, even a function of time.AfterFunc, and a goroutine whose
// labels the program has replaced.
func TestGuestHere(t *testing.T) {
	simulation.Calm(t)
	for range 2 { // the second World has other ids
		r := simulation.RunGuests(t, simulation.Options{Seed: 1}, func(_ context.Context, w *simulation.World) error {
			see := func(name string, boot int, guest bool) {
				gotName, gotBoot, got := simulation.HostHere()
				if overlaid := simulation.Nodes(); !overlaid {
					name, boot, guest = "", 0, false
				}
				if gotName != name || gotBoot != boot || got != guest {
					t.Errorf("%q %d %v instead of %q %d %v", gotName, gotBoot, got, name, boot, guest)
				}
			}
			see("", 0, true)
			_ = w.Go(func() { see("", 0, false) })
			var all sync.WaitGroup
			for boot := range 2 {
				all.Add(3)
				w.Node("a").Start(func(context.Context, *simulation.Host) {
					defer all.Done()
					see("a", boot, true)
					time.AfterFunc(time.Second, func() { defer all.Done(); see("a", boot, true) })
					pprof.SetGoroutineLabels(context.Background())
					go func() { defer all.Done(); see("a", boot, true) }()
				})
				all.Wait()
				w.Node("a").Crash()
			}
			return nil
		})
		require.NoError(t, r.Err)
	}
	name, boot, guest := simulation.HostHere()
	require.Zero(t, name)
	require.Zero(t, boot)
	require.False(t, guest)
}
