package simulation

import (
	"encoding/binary"
	"math"
	"math/bits"
	"time"

	"github.com/braidgo/braid/internal/splitmix"
)

// A source is a SplitMix64 generator (Steele, Lea and Flood, 2014).
type source uint64

// Uint64 implements rand.Source.
func (s *source) Uint64() uint64 {
	*s += splitmix.Golden
	return splitmix.Mix(uint64(*s))
}

// upTo returns a random duration from 0 to d.
func (s *source) upTo(d time.Duration) time.Duration {
	hi, _ := bits.Mul64(s.Uint64(), uint64(d)+1)
	return time.Duration(hi)
}

// below returns a random number from 0 to n-1.
func (s *source) below(n int) int {
	hi, _ := bits.Mul64(s.Uint64(), uint64(n))
	return int(hi)
}

// chance returns true with probability p.
func (s *source) chance(p float64) bool {
	return p > 0 && float64(s.Uint64()>>11)/(1<<53) < p
}

// mix adds x to the hash h. It folds a 128-bit product, as wyhash (Wang Yi) does.
func mix(h, x uint64) uint64 {
	hi, lo := bits.Mul64(h^0x9e3779b97f4a7c15, x^0xa0761d6478bd642f)
	return hi ^ lo ^ x
}

func hashBytes(h uint64, p []byte) uint64 {
	h = mix(h, uint64(len(p)))
	for ; len(p) >= 8; p = p[8:] {
		h = mix(h, binary.LittleEndian.Uint64(p))
	}
	var rest uint64
	for i, c := range p {
		rest |= uint64(c) << (8 * i)
	}
	return mix(h, rest)
}

func hashString(h uint64, s string) uint64 { return hashBytes(h, []byte(s)) }

// forever is the longest duration. The functions plus and ratio return it on an overflow.
const forever time.Duration = math.MaxInt64

// plus returns a + b. The duration b must not be negative.
func plus(a, b time.Duration) time.Duration {
	if b > forever-max(a, 0) {
		return forever
	}
	return a + b
}

// ratio returns (d*m + more) / n, rounded down. The duration d must not be negative.
func ratio(d time.Duration, m, more, n uint64) time.Duration {
	hi, lo := bits.Mul64(uint64(d), m)
	lo, carry := bits.Add64(lo, more, 0)
	if hi += carry; hi >= n {
		return forever
	}
	q, _ := bits.Div64(hi, lo, n)
	return time.Duration(min(q, uint64(forever)))
}

// roundUp rounds d up to a multiple of unit.
func roundUp(d, unit time.Duration) time.Duration {
	if rest := d % unit; rest > 0 {
		return plus(d, unit-rest)
	}
	return d
}

// without removes the first x from a slice, in place.
func without[T comparable](all []T, x T) []T {
	for i := range all {
		if all[i] == x {
			var none T
			copy(all[i:], all[i+1:])
			all[len(all)-1] = none
			return all[:len(all)-1]
		}
	}
	return all
}
