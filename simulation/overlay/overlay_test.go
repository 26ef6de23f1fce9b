package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/simulation/internal/edited"
)

// With BRAID_OVERLAID, TestOverlay runs the tests of package chance, which test by effect that each edit for guests is on, and those of guests: all
// packages of the standard library are then built again. BRAID_OVERLAID=stocktest runs the programs of simulation/stocktest, too.
func TestOverlay(t *testing.T) {
	if os.Getenv("BRAID_OVERLAID") == "" {
		return // package edited compiles the runtime with the overlay
	}
	g, err := edited.Overlay("")
	require.NoError(t, err)
	test := func(dir string, args ...string) {
		t.Helper()
		c := exec.Command(g.Command, append([]string{"test", "-v", "-vet=off", "-count=1", "-overlay=" + g.List, "-run"}, args...)...)
		c.Dir, c.Env = dir, append(os.Environ(), g.Env...)
		out, err := c.CombinedOutput()
		require.NoError(t, err, string(out))
		t.Logf("%s", out)
	}
	skip := "-skip=GuestEnds|GuestMessages" // there a guest computes without end, for 5 s at a time
	test("", "Overlaid|Seed|Guest", skip, "github.com/braidgo/braid/simulation/internal/chance", "github.com/braidgo/braid/simulation")
	if os.Getenv("BRAID_OVERLAID") == "stocktest" {
		test("../stocktest", ".", ".")
	}
}
