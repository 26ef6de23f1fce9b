// Package draws has the random source and the hash of a simulation. Both are fixed algorithms, so that a seed means the same run in each
// version of Go.
package draws

import (
	"encoding/binary"
	"math/bits"
	"time"

	"github.com/braidgo/braid/internal/splitmix"
)

// A Source is a SplitMix64 generator (Steele, Lea and Flood, 2014). Its value is its state.
type Source uint64

// Uint64 implements rand.Source.
func (s *Source) Uint64() uint64 {
	*s += splitmix.Golden
	return splitmix.Mix(uint64(*s))
}

// UpTo returns a random duration from 0 to d.
func (s *Source) UpTo(d time.Duration) time.Duration {
	hi, _ := bits.Mul64(s.Uint64(), uint64(d)+1)
	return time.Duration(hi)
}

// Below returns a random number from 0 to n-1.
func (s *Source) Below(n int) int {
	hi, _ := bits.Mul64(s.Uint64(), uint64(n))
	return int(hi)
}

// Chance returns true with probability p. It draws nothing if p is 0.
func (s *Source) Chance(p float64) bool {
	return p > 0 && float64(s.Uint64()>>11)/(1<<53) < p
}

// Mix adds x to the hash h. It folds a 128-bit product, as wyhash (Wang Yi) does.
func Mix(h, x uint64) uint64 {
	hi, lo := bits.Mul64(h^0x9e3779b97f4a7c15, x^0xa0761d6478bd642f)
	return hi ^ lo ^ x
}

// HashBytes adds the bytes of p to the hash h.
func HashBytes(h uint64, p []byte) uint64 {
	h = Mix(h, uint64(len(p)))
	for ; len(p) >= 8; p = p[8:] {
		h = Mix(h, binary.LittleEndian.Uint64(p))
	}
	var rest uint64
	for i, c := range p {
		rest |= uint64(c) << (8 * i)
	}
	return Mix(h, rest)
}

// HashString adds the bytes of s to the hash h.
func HashString(h uint64, s string) uint64 { return HashBytes(h, []byte(s)) }
