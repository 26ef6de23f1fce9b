package simulation_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/simulation"
)

// Badger writes its process id into a file, so with the process id of the machine, each run would be different.
func TestGuestPID(t *testing.T) {
	if !simulation.Nodes() {
		return
	}
	onNode(t, func(*simulation.World) { require.Equal(t, 4194305, os.Getpid()) })
	require.Less(t, os.Getpid(), 4194305)
}
