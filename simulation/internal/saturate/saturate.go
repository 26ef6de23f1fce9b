// Package saturate calculates with durations that do not overflow: a result that is too large is Forever.
package saturate

import (
	"math"
	"math/bits"
	"time"
)

// Forever is the longest duration.
const Forever time.Duration = math.MaxInt64

// Plus returns a + b. The duration b must not be negative.
func Plus(a, b time.Duration) time.Duration {
	if b > Forever-max(a, 0) {
		return Forever
	}
	return a + b
}

// Ratio returns (d*m + more) / n, rounded down. The duration d must not be negative.
func Ratio(d time.Duration, m, more, n uint64) time.Duration {
	hi, lo := bits.Mul64(uint64(d), m)
	lo, carry := bits.Add64(lo, more, 0)
	if hi += carry; hi >= n {
		return Forever
	}
	q, _ := bits.Div64(hi, lo, n)
	return time.Duration(min(q, uint64(Forever)))
}

// RoundUp rounds d up to a multiple of unit.
func RoundUp(d, unit time.Duration) time.Duration {
	if rest := d % unit; rest > 0 {
		return Plus(d, unit-rest)
	}
	return d
}
