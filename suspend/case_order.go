package suspend

import (
	"math/bits"

	"github.com/braidgo/braid/internal/splitmix"
)

// An order is that in which a Select looks at its legs: a random number that says how to shuffle them, or inOrder.
type order struct {
	seed     uint64
	shuffled bool
}

// shuffled returns a random order of n legs, for a Select of a task that is bound to b. For two a bit is enough.
func shuffled(b *binding, n int) order {
	if n == 2 && b != nil && b.task != nil {
		return order{b.coin(), true}
	}
	return order{b.draw(), true}
}

// lookLocked performs the first of legs that need not wait, and returns its index.
func (o order) lookLocked(legs []leg) (won int) {
	if !o.shuffled {
		for i := range legs {
			if legs[i].try() {
				return i
			}
		}
		return none
	}
	if len(legs) == 2 {
		first := int(o.seed >> 63)
		if legs[first].try() {
			return first
		}
		if legs[1-first].try() {
			return 1 - first
		}
		return none
	}
	return lookShuffled(legs, o.seed)
}

// lookShuffled draws one leg after another from the remaining legs, each with the same chance (Fisher and Yates). A random
// start alone would not do: the leg behind a gap of legs that must wait would be performed more often.
func lookShuffled(legs []leg, seed uint64) (won int) {
	var buf [16]int
	left := buf[:0]
	for i := range legs {
		left = append(left, i)
	}
	for n := len(left); n > 0; n-- {
		seed += splitmix.Golden
		k, _ := bits.Mul64(splitmix.Mix(seed), uint64(n))
		i := left[k]
		left[k] = left[n-1]
		if legs[i].try() {
			return i
		}
	}
	return none
}
