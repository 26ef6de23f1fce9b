//go:build !race

package schedtest

// Race says that the race detector is on, which makes large numbers of tasks slow.
const Race = false
