//go:build !explore

package workstealing

// roomFor returns how many entries a queue has room for after the given number of steps, given the nanoseconds that they took.
func roomFor(steps int, took int64) int {
	return int(min(queueSize, int64(steps)*int64(tenth)/max(1, took)))
}
