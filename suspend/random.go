package suspend

import "math/rand/v2"

// Random returns the random source of the calling task's scheduler, see Rand. It is for code that runs in production and in a simulation: there
// its numbers are those of the seed.
//
//	pause := rand.New(suspend.Random()).IntN(100)
//
// Elsewhere, in a callback too, it is that of math/rand/v2. It may be used by any number of tasks and goroutines: each draw is one of its caller.
func Random() rand.Source { return random{} }

type random struct{}

// Uint64 implements rand.Source.
func (random) Uint64() uint64 { return current().draw() }
