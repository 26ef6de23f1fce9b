package simulation_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/simulation"
)

// Badger writes its process id into a file, so the id of the machine would make each run another one.
func TestGuestPID(t *testing.T) {
	if !simulation.Nodes() {
		return
	}
	onNode(t, func(*simulation.World) { require.Equal(t, 4194305, os.Getpid()) })
	require.Less(t, os.Getpid(), 4194305)
}
