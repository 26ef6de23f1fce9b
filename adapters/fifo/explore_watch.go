//go:build explore

package fifo

import "github.com/braidgo/braid/adapters/internal/coro"

// A Watch is a Stalls without a clock, for the model checker.
type Watch = coro.Watch

// NewWatch returns a Watch for a worker that is in a step.
func NewWatch() *Watch { return coro.NewWatch() }
