// Package weight limits the lines of production code and of tests of each part of the repository, and the exported names of
// each package.
package weight

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	root   = "../../.."
	limits = "limits.txt"
	names  = "../api/v0.txt" // has a line for each exported name
)

// TestWeight fails if a part has more lines or names than limits.txt allows. A change that raises a limit must state the reason behind it.
func TestWeight(t *testing.T) {
	text, err := os.ReadFile(limits)
	require.NoError(t, err)
	counts := map[string]map[string]int{"names": namesOf(t)}
	counts["lines"], counts["tests"] = linesOf(t)
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		require.Len(t, fields, 3, "%s", line)
		what, part := fields[0], fields[1]
		limit, err := strconv.Atoi(fields[2])
		require.NoError(t, err)
		seen[what+" "+part] = true
		have := counts[what]
		require.NotNil(t, have, "%s", line)
		require.NotZero(t, have[part], "%s %s: there are none", what, part)
		if have[part] > limit {
			t.Errorf("%s has %d %s, and its limit in %s is %d: make it smaller, or raise the limit and write the reason behind it", part, have[part], what, limits, limit)
		}
	}
	for what, have := range counts {
		for part, n := range have {
			require.True(t, seen[what+" "+part], "%s has %d %s and no limit", part, n, what)
		}
	}
}

// primitives count as one part, because each is small.
var primitives = strings.Fields("mutex semaphore cond latch chanx mvar promise lazy cancel watch broadcast rate keyed respool scope")

func partOf(folder string) string {
	first, _, _ := strings.Cut(folder, "/")
	for _, p := range primitives {
		if p == first {
			return "primitives"
		}
	}
	return first
}

// linesOf counts the lines of production code and of tests of each part, with comments and blank lines.
func linesOf(t *testing.T) (production, tests map[string]int) {
	production, tests = map[string]int{}, map[string]int{}
	require.NoError(t, filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && file != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if name := filepath.ToSlash(strings.TrimPrefix(file, root+string(filepath.Separator))); strings.Contains(name, "/") && strings.HasSuffix(name, ".go") {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			lines := production
			if strings.HasSuffix(name, "_test.go") {
				lines = tests
			}
			lines[partOf(name)] += bytes.Count(text, []byte("\n"))
		}
		return nil
	}))
	return production, tests
}

func namesOf(t *testing.T) map[string]int {
	text, err := os.ReadFile(names)
	require.NoError(t, err)
	exported := map[string]int{}
	for line := range strings.Lines(string(text)) {
		folder, _, ok := strings.Cut(line, ": ")
		require.True(t, ok, "%s", line)
		exported[folder]++
	}
	return exported
}
