package simulation

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/braidgo/braid/simulation/internal/chance"
	"github.com/braidgo/braid/simulation/internal/edited"
)

// This file builds the program in which each run with guests has a separate process: the test that is running, with the overlay of package
// simulation/overlay.

// testDir is the folder of the package, in which go test starts a test.
var testDir, _ = os.Getwd()

// programs has the path of the program, or why there is none.
var programs struct {
	sync.Once
	path string
	err  error
}

// overlaid returns the path of the program. If the running program has the overlay, the path is its own. The first call builds the program,
// and takes at most half of the time that remains for t.
func overlaid(t *testing.T) (path string, err error) {
	programs.Do(func() {
		ctx := context.Background()
		if end, ok := t.Deadline(); ok {
			limited, stop := context.WithTimeout(ctx, time.Until(end)/2)
			defer stop()
			ctx = limited
		}
		programs.path, programs.err = find(ctx)
	})
	return programs.path, programs.err
}

func find(ctx context.Context) (string, error) {
	self, err := os.Executable()
	if err != nil || chance.Nodes() {
		return self, err
	}
	if testing.CoverMode() != "" {
		return "", errors.New("the test records its coverage")
	}
	if strconv.IntSize == 32 {
		return "", errors.New("the overlay needs a 64-bit machine")
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || !testing.Testing() {
		return "", errors.New("not running in a test binary built by go test")
	}
	text, err := os.ReadFile(self)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	// The program follows from this one, which contains the edits of the overlay.
	program := filepath.Join(cache, "braid", "tests", fmt.Sprintf("%x", sha256.Sum256(text)), filepath.Base(info.Path))
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	return program, build(ctx, program, info)
}

// build builds the program of the package in testDir, with the flags of this program.
func build(ctx context.Context, program string, info *debug.BuildInfo) error {
	g, err := edited.Overlay(testDir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(program), 0o777); err != nil {
		return err
	}
	part, err := os.MkdirTemp(filepath.Dir(program), "part")
	if err != nil {
		return err
	}
	defer os.RemoveAll(part)
	made := filepath.Join(part, "test")
	args := []string{"test", "-c", "-vet=off", "-overlay=" + g.List, "-o", made}
	for _, s := range info.Settings {
		switch s.Key {
		case "-race", "-msan", "-asan", "-tags", "-ldflags", "-gcflags":
			args = append(args, s.Key+"="+s.Value)
		}
	}
	c := exec.CommandContext(ctx, g.Command, append(args, ".")...)
	c.Dir, c.Env = testDir, append(os.Environ(), g.Env...)
	if out, err := c.CombinedOutput(); ctx.Err() != nil {
		return fmt.Errorf("go test -c takes longer than half of the time for the test: %w", ctx.Err())
	} else if err != nil {
		return fmt.Errorf("go test -c: %w: %s", err, out)
	}
	built, err := buildinfo.ReadFile(made)
	if err != nil {
		return err
	}
	if built.Path != info.Path {
		return fmt.Errorf("the folder %s has another package: %s", testDir, built.Path)
	}
	return os.Rename(made, program)
}
