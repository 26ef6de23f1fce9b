package suspend

import "math/rand/v2"

// Random returns the random source of the calling task's scheduler, see Rand. It is for code that runs in production and in a simulation: there
// the seed decides its numbers.
//
//	pause := rand.New(suspend.Random()).IntN(100)
//
// Elsewhere, in a callback too, the numbers come from math/rand/v2. Any number of tasks and goroutines may use it: each draw
// is from the source of its caller.
func Random() rand.Source { return callerRandom{} }

type callerRandom struct{}

// Uint64 implements rand.Source.
func (callerRandom) Uint64() uint64 { return current().draw() }

// draw returns a random number for a task that is bound to b, which may be nil.
func (b *binding) draw() uint64 {
	if b == nil || b.task == nil {
		return rand.Uint64()
	}
	if b.random == nil {
		b.random = rand.Uint64
		if r, ok := As[Rand](spawnerOf(b.task)); ok {
			b.random = r.Uint64
		}
	}
	return b.random()
}

// coin returns a number whose highest bit is random. One draw serves for 31 of them.
func (b *binding) coin() uint64 {
	if b.coins <= 1 {
		b.coins = uint32(b.draw()) | 1<<31 // the highest bit marks the end
	}
	x := uint64(b.coins) << 63
	b.coins >>= 1
	return x
}

// drawFor is draw for a Then, which may be called where no task is bound: then on is the
// source, if it is a Rand.
func drawFor(on Executor) uint64 {
	b := current()
	if b == nil || b.task == nil {
		if r, ok := asOf[Rand](on); ok {
			return r.Uint64()
		}
	}
	return b.draw()
}
