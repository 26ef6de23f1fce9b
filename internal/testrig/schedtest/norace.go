//go:build !race

package schedtest

// Race says whether the race detector is on. Tests with many tasks are slow with the race detector.
const Race = false
