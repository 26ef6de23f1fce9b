package edited

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOverlay compiles the edited packages. With BRAID_OVERLAID, it runs the tests of testdata/effects, for which all packages of
// the standard library are built again.
func TestOverlay(t *testing.T) {
	g, err := Overlay("")
	require.NoError(t, err)
	if os.Getenv("BRAID_OVERLAID") != "" {
		require.NoError(t, effects(t, g, "-race=false"))
		return
	}
	out, err := g.command("", "build", "-overlay="+g.List, "runtime", "sync", "testing", "net/http").CombinedOutput()
	require.NoError(t, err, string(out))
}

// TestEdits leaves out one edit at a time: then the runtime does not compile, or a test of testdata/effects fails. BRAID_EDITS=1
// leaves out each edit in turn, and BRAID_EDITS=k/n every n-th one. An edit takes a minute of processor time, because the
// standard library is built again.
func TestEdits(t *testing.T) {
	k, n := 0, 1
	if v := os.Getenv("BRAID_EDITS"); v == "" {
		return
	} else if v != "1" {
		_, err := fmt.Sscanf(v, "%d/%d", &k, &n)
		require.NoError(t, err)
	}
	for i, e := range edits {
		if i%n != k%n || e.elsewhere {
			continue
		}
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			g, err := overlay("", slices.Delete(slices.Clone(edits), i, i+1))
			require.NoError(t, err)
			if e.race { // with all edits, TestOverlay runs these tests without the race detector
				all, err := Overlay("")
				require.NoError(t, err)
				require.NoError(t, effects(t, all, "-race=true"))
			}
			if strings.HasPrefix(e.file, "net/") {
				err = onNodes(g)
			} else {
				err = effects(t, g, fmt.Sprint("-race=", e.race))
			}
			require.Error(t, err, "no test fails without the edit of %s: %s", e.file, e.old)
			first, _, _ := strings.Cut(err.Error(), "\n")
			t.Log(e.file, strings.TrimSpace(e.old), "->", first)
		})
	}
}

func (g *Go) command(dir string, args ...string) *exec.Cmd {
	c := exec.Command(g.Command, args...)
	c.Dir, c.Env = dir, append(os.Environ(), g.Env...)
	return c
}

// onNodes runs the tests of package net in a simulation.
func onNodes(g *Go) error {
	c := g.command("../..", "test", "-vet=off", "-count=1", "-timeout=1m", "-overlay="+g.List, "-run=TestGuestNet", ".")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// effects runs the tests of testdata/effects with the overlay of g. All lines that begin with "same:" must be equal in each run.
// The lines that begin with "see:" must be equal if a seed is repeated, and each must differ for some seed.
func effects(t *testing.T, g *Go, flag string) error {
	binary := filepath.Join(t.TempDir(), "effects.test")
	if out, err := g.command("testdata/effects", "test", "-c", "-vet=off", flag, "-overlay="+g.List, "-o", binary, ".").CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	run := func(order, pattern string, env ...string) ([]string, error) {
		limited, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		c := exec.CommandContext(limited, binary, "-test.run="+pattern, "-test.timeout=10000h")
		c.Dir, c.Env = "testdata/effects", append(append(os.Environ(), "BRAID_ORDER="+order), env...)
		c.Env = append(c.Env, "GORACE=report_bugs=0 atexit_sleep_ms=0") // the tests rely on one goroutine at a time
		if order == "" {
			c.Env = append(c.Env, "UNORDERED=1")
		}
		out, err := c.CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("order %s: %w: %s", order, err, out)
		}
		var lines []string
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, "see: ") || strings.HasPrefix(line, "same: ") {
				lines = append(lines, line)
			}
		}
		slices.Sort(lines)
		return lines, nil
	}
	first := map[string]string{} // the first value of each line
	varies := map[string]bool{}
	for seed := range 60 {
		how, tests := "y", "Points|Choices|Process$|Same"
		if seed >= 40 { // priorities, which need the order of the run queue
			how, tests = "l", "Woken"
		}
		order := fmt.Sprint(seed+1, how)
		lines, err := run(order, tests)
		if err != nil {
			return err
		}
		again, err := run(order, tests, "SECOND=1")
		if err != nil {
			return err
		}
		if !slices.Equal(lines, again) {
			return fmt.Errorf("order %s did not repeat:\n%v\n%v", order, lines, again)
		}
		for _, line := range lines {
			kind, rest, _ := strings.Cut(line, " ")
			name, value, _ := strings.Cut(rest, ": ")
			if name += " " + how; first[name] == "" {
				first[name] = value
			}
			switch {
			case kind == "see:":
				varies[name] = varies[name] || first[name] != value
			case first[name] != value:
				return fmt.Errorf("order %s has another %s", order, name)
			default:
				varies[name] = true
			}
		}
	}
	lines, err := run("1y", "Process$")
	if err != nil {
		return err
	}
	if other, err := run("1y", "Process$", "GODEBUG=cpu.aes=off"); err != nil || len(lines) == 0 || !slices.Equal(lines, other) {
		return fmt.Errorf("a processor that hashes without AES has other keys: %v, %v, %w", lines, other, err)
	}
	for name := range first {
		if !varies[name] {
			return fmt.Errorf("%s is %s in all orders", name, strings.TrimSpace(first[name]))
		}
	}
	for _, order := range []string{"1y", "2d", "3l", "1y:", ""} {
		pattern := "."
		if order == "" {
			pattern = "Unordered"
		}
		if _, err := run(order, pattern); err != nil {
			return err
		}
	}
	return nil
}

// A release of Go is refused if the text to be edited is missing or occurs more often, and so is a folder without Go.
func TestOverlayRefuses(t *testing.T) {
	changed := slices.Clone(edits)
	for _, old := range []string{"no such line", "rand"} {
		changed[1].old = old
		_, err := overlay("", changed)
		require.ErrorContains(t, err, "not 1: "+old)
		require.ErrorContains(t, err, "is not a release of Go whose runtime this version of Braid can edit (it knows Go 1.26 and 1.27)")
	}
	changed[1].file = "runtime/no.go"
	_, err := overlay("", changed)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A copy of a folder has all its files. A second call finds the first copy.
func TestCopyTree(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "a", "b")
	require.NoError(t, os.MkdirAll(filepath.Join(from, "bin"), 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(from, "bin", "go"), []byte("go"), 0o755))
	for range 2 {
		require.NoError(t, copyTree(to, from))
		info, err := os.Stat(filepath.Join(to, "bin", "go"))
		require.NoError(t, err)
		require.NotZero(t, info.Mode()&0o100)
	}
	all, err := os.ReadDir(filepath.Dir(to))
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.True(t, folderHas(from, filepath.Join(from, "bin")))
	require.False(t, folderHas(to, from))
}
