package suspend

import (
	"math/rand/v2"

	"github.com/braidgo/braid/suspend/sched"
)

// Random returns the random source of the calling task's scheduler, see sched.Rand. Code that uses Random also runs in a simulation,
// where the seed determines the numbers.
//
//	pause := rand.New(suspend.Random()).IntN(100)
//
// The numbers come from math/rand/v2 if there is no task, as in a callback, or if the scheduler has no Rand. Tasks and goroutines
// may share the returned source, because each draw uses the scheduler of its caller.
func Random() rand.Source { return callerRandom{} }

type callerRandom struct{}

// Uint64 implements rand.Source.
func (callerRandom) Uint64() uint64 { return current().draw() }

// draw returns a random number for the task that is bound to b. b may be nil.
func (b *binding) draw() uint64 {
	if b == nil || b.task == nil {
		return rand.Uint64()
	}
	if b.random == nil {
		b.random = rand.Uint64
		if r, ok := As[sched.Rand](spawnerOf(b.task)); ok {
			b.random = r.Uint64
		}
	}
	return b.random()
}

// coin returns a number whose highest bit is random. One draw provides 31 such bits.
func (b *binding) coin() uint64 {
	if b.coins <= 1 {
		b.coins = uint32(b.draw()) | 1<<31 // the highest bit marks the end
	}
	x := uint64(b.coins) << 63
	b.coins >>= 1
	return x
}

// drawFor is like draw, but for a Then. If no task calls it, the number comes from the executor, if that is a Rand.
func drawFor(on Executor) uint64 {
	b := current()
	if b == nil || b.task == nil {
		if r, ok := asOf[sched.Rand](on); ok {
			return r.Uint64()
		}
	}
	return b.draw()
}
