package docs

import (
	"encoding/csv"
	"fmt"
	"math"
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
