//go:build !race

package schedtest

// Race says whether the race detector is on. The detector makes large numbers of tasks slow.
const Race = false
