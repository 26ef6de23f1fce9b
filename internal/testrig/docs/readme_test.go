package docs

import (
	"encoding/csv"
	"fmt"
	"math"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReadme checks that README.md is short, that its code fits on a phone, and that its figures are those of the pages with the
// measurements.
func TestReadme(t *testing.T) {
	text := read(t, "README.md")
	require.LessOrEqual(t, strings.Count(text, "\n"), 100)
	blocks := block.FindAllStringSubmatch(text, -1)
	require.Len(t, blocks, 2)
	for _, m := range blocks {
		for line := range strings.SplitSeq(m[1], "\n") {
			require.NotContains(t, line, "\t", "a tab may be as wide as eight characters")
			require.LessOrEqual(t, len(line), 39, "a page of 390 pixels shows no more: %s", line)
		}
	}
	require.Regexp(t, `takes\n\[67 lines\]\(examples/libraries/beside/journal_usual\.go\) instead of 21:`, text)
	require.Regexp(t, `(?m)^\| a journal .* \| 21 \| .* \| 67 \|$`, read(t, "docs/programs.md"), "examples/libraries/beside counts these lines")
	require.Contains(t, text, "| a goroutine | "+threadBytes(t, "goroutines")+" |")
	require.Contains(t, text, "| a coroutine of a scheduler | "+threadBytes(t, "tasks of a fifo")+" |")
}

// TestDependencies checks the figures under "What you depend on": the packages that mutex adds to a program, and the modules of others that
// the packages of the root module import.
func TestDependencies(t *testing.T) {
	text := read(t, "README.md")
	require.Contains(t, text, fmt.Sprintf("and %d packages: `suspend`", len(imported(t, "./mutex"))))
	cmd := exec.Command("go", "list", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	require.NoError(t, err)
	var public []string
	for folder := range strings.FieldsSeq(string(out)) {
		if !strings.Contains(folder, "/internal/testrig") && !strings.Contains(folder, "/examples/") && !strings.HasSuffix(folder, "/suspendtest/linear") {
			public = append(public, folder)
		}
	}
	others := map[string]bool{}
	for _, name := range imported(t, public...) {
		if !strings.HasPrefix(name, "github.com/braidgo/braid") {
			others[strings.TrimSuffix(name, "/unix")] = true
		}
	}
	require.Equal(t, map[string]bool{"github.com/petermattis/goid": true, "golang.org/x/sys": true}, others)
	require.Contains(t, text, "import [goid](https://github.com/petermattis/goid) and golang.org/x/sys.")
}

// imported returns the packages outside the standard library that the given packages consist of.
func imported(t *testing.T, folders ...string) (names []string) {
	cmd := exec.Command("go", append([]string{"list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}"}, folders...)...)
	cmd.Dir = root
	out, err := cmd.Output()
	require.NoError(t, err)
	return strings.Fields(string(out))
}

// threadBytes returns the least and the greatest median of a series, in hundreds of bytes.
func threadBytes(t *testing.T, series string) string {
	rows, err := csv.NewReader(strings.NewReader(read(t, "bench/results/thread-bytes.csv"))).ReadAll()
	require.NoError(t, err)
	least, greatest := math.Inf(1), 0.0
	for _, row := range rows {
		if row[0] == series {
			bytes, err := strconv.ParseFloat(row[2], 64)
			require.NoError(t, err)
			bytes = math.Round(bytes/100) * 100
			least, greatest = min(least, bytes), max(greatest, bytes)
		}
	}
	thousands := func(n float64) string { return fmt.Sprintf("%d,%03d", int(n)/1000, int(n)%1000) }
	if least == greatest {
		return thousands(least)
	}
	return thousands(least) + " to " + thousands(greatest)
}
