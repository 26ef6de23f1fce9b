package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/simulation/internal/edited"
)

// With BRAID_OVERLAID, TestOverlay runs the tests of package chance, which test the effect of each edit for guests, and the tests
// of guests. All packages of the standard library are built again. BRAID_OVERLAID=stocktest also runs the programs of
// simulation/stocktest.
func TestOverlay(t *testing.T) {
	if os.Getenv("BRAID_OVERLAID") == "" {
		return // the tests of package edited compile the runtime with the overlay
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
	skip := "-skip=GuestEnds|GuestMessages" // in these tests a guest computes without end, for 5 s each
	test("", "Overlaid|Seed|Guest", skip, "github.com/braidgo/braid/simulation/internal/chance", "github.com/braidgo/braid/simulation")
	if os.Getenv("BRAID_OVERLAID") == "stocktest" {
		test("../stocktest", ".", ".")
	}
}
