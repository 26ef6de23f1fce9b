package main

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOverlay compiles the runtime with the overlay. With BRAID_OVERLAID it runs the tests of package chance, which test by effect that each
// edit is on: all packages of the standard library are then built again.
func TestOverlay(t *testing.T) {
	list, err := overlay()
	if errors.Is(err, errDownloaded) {
		require.Empty(t, list)
		return // by go env of the machine
	}
	require.NoError(t, err)
	args := []string{"test", "-vet=off", "-count=1", "-overlay=" + list, "-run", "Overlaid|Seed", "github.com/braidgo/braid/internal/chance"}
	if os.Getenv("BRAID_OVERLAID") == "" {
		args = []string{"build", "-overlay=" + list, "runtime"}
	}
	c := exec.Command("go", args...)
	out, err := c.CombinedOutput()
	require.NoError(t, err, string(out))
}

// A release of Go without a line that is edited, or with two of it, is refused.
func TestOverlayRefuses(t *testing.T) {
	was := edits[1]
	defer func() { edits[1] = was }()
	for _, old := range []string{"no such line", "rand"} {
		edits[1].old = old
		_, err := overlay()
		require.ErrorContains(t, err, "not once: "+old)
	}
}
