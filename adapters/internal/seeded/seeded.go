// Package seeded is the random source that a repeatable scheduler offers to its tasks.
package seeded

import "sync/atomic"

// A Source yields the same numbers for the same seed: SplitMix64 (Steele, Lea and Flood, 2014). Any goroutine may draw.
// It is an atomic of its own and not one of atomicx: to the model checker a draw is no access.
type Source struct{ state atomic.Uint64 }

// Seed begins the sequence of seed.
func (s *Source) Seed(seed uint64) { s.state.Store(seed) }

// Uint64 returns the next number.
func (s *Source) Uint64() uint64 {
	x := s.state.Add(0x9e3779b97f4a7c15)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
