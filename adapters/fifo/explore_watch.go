//go:build explore

package fifo

import "github.com/braidgo/braid/internal/coro"

// A Watch detects long steps as a coro.Stalls does, but without a clock, for the model checker.
type Watch = coro.Watch

// NewWatch returns a Watch for a worker that is running a step.
func NewWatch() *Watch { return coro.NewWatch() }
