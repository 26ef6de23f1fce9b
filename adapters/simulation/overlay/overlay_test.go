package main

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOverlay compiles the runtime with the overlay. With BRAID_OVERLAID it runs the tests of package chance, which test by effect that each
// edit is on, and those of guests: all packages of the standard library are then built again. BRAID_OVERLAID=simtest runs the
// programs of simtest, too.
func TestOverlay(t *testing.T) {
	list, err := overlay()
	if errors.Is(err, errDownloaded) {
		require.Empty(t, list)
		return // by go env of the machine
	}
	require.NoError(t, err)
	command := func(dir string, args ...string) {
		t.Helper()
		c := exec.Command("go", args...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		require.NoError(t, err, string(out))
		t.Logf("%s", out)
	}
	if os.Getenv("BRAID_OVERLAID") == "" {
		command("", "build", "-overlay="+list, "runtime")
		return
	}
	test := []string{"test", "-v", "-vet=off", "-count=1", "-overlay=" + list, "-run"}
	skip := "-skip=GuestEnds|GuestMessages" // there a guest computes without end, for 5 s at a time
	command("", append(test, "Overlaid|Seed|Guest", skip, "github.com/braidgo/braid/internal/chance", "github.com/braidgo/braid/adapters/simulation")...)
	if os.Getenv("BRAID_OVERLAID") == "simtest" {
		command("../../../simtest", append(test, ".", ".")...)
	}
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
