package suspend

import (
	"math/bits"

	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/internal/splitmix"
)

// An order is the order in which a Select tries its legs: as they are listed, or shuffled by a random number.
type order struct {
	seed     uint64
	shuffled bool
}

// shuffled returns a random order of n legs, for a Select by the task that is bound to b. Two legs need only one random bit.
func shuffled(b *binding, n int) order {
	if n == 2 && b != nil && b.task != nil {
		return order{b.coin(), true}
	}
	return order{b.draw(), true}
}

// lookLocked tries legs in the order o. It returns the index of the leg that succeeded, or none. The caller must hold the guards
// of legs.
func (o order) lookLocked(legs []leg) (won int) {
	if preempt.On() {
		reportLook(legs)
	}
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

// lookShuffled is like lookLocked, but for more than two shuffled legs. It draws each leg from the legs not yet tried, with equal
// chances, as in a Fisher-Yates shuffle. Trying the legs in rotation from a random start would favour a ready leg that follows
// several legs that must wait.
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
