// Package seeded is the random source that a repeatable scheduler offers to its tasks.
package seeded

import (
	"sync/atomic"

	"github.com/braidgo/braid/internal/splitmix"
)

// A Source yields the same numbers for the same seed. Any goroutine may draw. It must not use atomicx: to the model
// checker a draw is no access.
type Source struct{ state atomic.Uint64 }

// Seed begins the sequence of seed.
func (s *Source) Seed(seed uint64) { s.state.Store(seed) }

// Uint64 returns the next number.
func (s *Source) Uint64() uint64 {
	return splitmix.Mix(s.state.Add(splitmix.Golden))
}
