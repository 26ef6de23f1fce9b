package suspend

import (
	"math/rand/v2"
	"time"
)

// These are the capabilities of a Spawner beside Go. The functions of this package ask for them by [As], and do without one that a
// scheduler does not have. A Spawner that wraps another has a method Unwrap() Spawner, and so offers the capabilities of that one. The
// conformance kit checks each capability that it finds.

// Rand is a source of random numbers: Select, Choose and Then draw from the one of the calling task's scheduler. A
// scheduler that repeats a run from its seed has a seeded one, and so its tasks make the same choices again. Uint64 may
// be called by any goroutine. Without it, the source is that of math/rand/v2.
type Rand interface{ Uint64() uint64 }

// Timers are the timers of a scheduler. AfterFunc calls f after d, as Execute would: f must not suspend. stop reports
// whether it has prevented the call. AfterFunc obeys the contract of Unpark. A scheduler that has closed may drop the
// timers that no task of its own waits for. Without it, the timers are those of package time.
type Timers interface {
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// Clock is the clock of the Timers. Now obeys the contract of Unpark. Without it, the clock is that of package time.
type Clock interface{ Now() time.Time }

// Blocker runs f, which may block, on a goroutine, and bounds the number of those. It does not wait for f. Without it,
// Blocking starts a goroutine for each f.
type Blocker interface{ Block(f func()) error }

// As returns s as a C, a capability, or else the first of what s wraps that is one.
func As[C any](s Spawner) (c C, ok bool) {
	for s != nil {
		if c, ok = s.(C); ok {
			return c, true
		}
		w, wraps := s.(interface{ Unwrap() Spawner })
		if !wraps {
			break
		}
		s = w.Unwrap()
	}
	return c, false
}

// asOf is As for an executor, which may be no Spawner.
func asOf[C any](on Executor) (c C, ok bool) {
	if c, ok = on.(C); ok {
		return c, true
	}
	s, _ := on.(Spawner)
	return As[C](s)
}

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
		b.coins = uint32(b.draw()) | 1<<31 // which marks the end
	}
	x := uint64(b.coins) << 63
	b.coins >>= 1
	return x
}

// drawFor is draw for a Then, which may be called where no task is bound: then on is asked.
func drawFor(on Executor) uint64 {
	b := current()
	if b == nil || b.task == nil {
		if r, ok := asOf[Rand](on); ok {
			return r.Uint64()
		}
	}
	return b.draw()
}

// spawnerOf returns the scheduler of t, nil if t does not say.
func spawnerOf(t Task) Spawner {
	if t, ok := t.(interface{ Spawner() Spawner }); ok {
		return t.Spawner()
	}
	return nil
}
