package simulation

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
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

// programs holds the path of the program, or why there is none.
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
	tests := filepath.Join(cache, "braid", "tests")
	folder := filepath.Join(tests, fmt.Sprintf("%x", sha256.Sum256(text)))
	program := filepath.Join(folder, filepath.Base(info.Path))
	if _, err := os.Stat(program); err == nil {
		now := time.Now()
		return program, os.Chtimes(folder, now, now)
	}
	removeOld(tests)
	return program, build(ctx, program, info, text)
}

// The cache keeps a program that was used in the last month, if the programs that were used later have less than 1 GB. It always keeps a
// program that was used in the last day, because a test may run that long.
const (
	monthOld   = 30 * 24 * time.Hour
	dayOld     = 24 * time.Hour
	mostCached = 1 << 30
)

// removeOld removes programs from the cache.
func removeOld(tests string) {
	entries, _ := os.ReadDir(tests)
	used, size, total := map[string]time.Time{}, map[string]int64{}, int64(0)
	for _, f := range entries {
		_ = filepath.WalkDir(filepath.Join(tests, f.Name()), func(name string, d fs.DirEntry, err error) error {
			if err == nil {
				if info, err := d.Info(); err == nil && d.Type().IsRegular() {
					size[f.Name()] += info.Size()
				} else if err == nil && d.Name() == f.Name() {
					used[f.Name()] = info.ModTime()
				}
			}
			return nil
		})
	}
	latest := slices.SortedFunc(maps.Keys(used), func(a, b string) int { return used[b].Compare(used[a]) })
	for _, name := range latest {
		age := time.Since(used[name])
		if age > monthOld || age > dayOld && total+size[name] > mostCached {
			_ = os.RemoveAll(filepath.Join(tests, name))
			continue
		}
		total += size[name]
	}
}

// build builds the program of the package in testDir, with the flags of this program, whose text is self.
func build(ctx context.Context, program string, info *debug.BuildInfo, self []byte) error {
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
	binary := filepath.Join(part, "test")
	args := []string{"test", "-c", "-vet=off", "-overlay=" + g.List, "-o", binary}
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
	built, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	if built.Path != info.Path {
		return fmt.Errorf("the folder %s has another package: %s", testDir, built.Path)
	}
	text, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	here, there := versions(self), versions(text)
	for _, path := range slices.Sorted(maps.Keys(there)) {
		if v, ok := here[path]; ok && v != there[path] {
			return fmt.Errorf("go test -c takes %s %s, and this program has %s; -modfile must be in GOFLAGS", path, there[path], v)
		}
	}
	return os.Rename(binary, program)
}

// versions returns the versions of the modules in the module cache from which a program was built, by their paths. The build information of a
// test has no modules, but its text has the names of its source files.
func versions(text []byte) map[string]string {
	all := map[string]string{}
	isName := func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || bytes.IndexByte([]byte("!+-._~/\\:"), c) >= 0
	}
	for at := 0; ; {
		n := bytes.Index(text[at:], []byte("@v"))
		if n < 0 {
			return all
		}
		at += n
		from, to := at, at+1
		for from > 0 && isName(text[from-1]) {
			from--
		}
		for to < len(text) && isName(text[to]) && text[to] != '/' && text[to] != '\\' {
			to++
		}
		if from < at && to < len(text) && (text[to] == '/' || text[to] == '\\') {
			all[string(text[from:at])] = string(text[at+1 : to])
		}
		at = to
	}
}
