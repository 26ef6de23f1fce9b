package simulation_test

import (
	"context"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/simulation"
)

// Guests that return from real system calls are not stuck, although the runtime counts them for a moment neither as runnable nor as in a call.
func TestGuestReturns(t *testing.T) {
	r := guests(t, func(context.Context, *simulation.World) error {
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 500 {
					_ = syscall.Nanosleep(&syscall.Timespec{Nsec: 100_000}, nil)
				}
			})
		}
		all.Wait()
		return nil
	})
	require.NoError(t, r.Err)
}
