// Package seeded provides the random source that a repeatable scheduler offers to its tasks.
package seeded

import (
	"sync/atomic"

	"github.com/braidgo/braid/internal/splitmix"
)

// A Source yields the same numbers for the same seed. Any goroutine may use it. A Source does not use atomicx, so that
// the model checker does not treat a random number as an access to shared memory.
type Source struct{ state atomic.Uint64 }

// Seed starts the sequence of numbers for the given seed.
func (s *Source) Seed(seed uint64) { s.state.Store(seed) }

// Uint64 returns the next number.
func (s *Source) Uint64() uint64 {
	return splitmix.Mix(s.state.Add(splitmix.Golden))
}
