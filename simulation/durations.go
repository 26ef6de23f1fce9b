package simulation

import (
	"math"
	"math/bits"
	"time"
)

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
