package workstealing

import (
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/prefetch"
)

// An entry is something to run that is not a fork in a deque: a fiber that was woken or has yielded, a task to
// begin, a callback, or a fork that is claimed already.
type entry struct {
	fiber *fiber // resumed if not nil
	f     func() // begun if not nil
	fork  *fork  // otherwise
	woken bool   // the fiber was suspended
	call  bool   // f is a callback
}

// An injector is the queue of the pool for runnable entries, first in, first out. Its lock is a leaf: nothing is called under
// it.
type injector struct {
	mu    atomicx.Mutex
	n     atomicx.Int64 // written under mu; read without it to skip an empty queue
	first int           // guarded by mu, as are these
	taken int           // entries, ever
	ring  []entry       // n of them, from first on; a power of two in size
}

// keepRing is the size from which on an empty ring is not kept.
const keepRing = 1 << 12

func (in *injector) push(e entry) {
	in.mu.Lock()
	n := int(in.n.Load())
	if n == len(in.ring) {
		ring := make([]entry, max(64, 2*n))
		copy(ring, in.ring[in.first:])
		copy(ring[n-in.first:], in.ring[:in.first])
		in.ring, in.first = ring, 0
	}
	in.ring[(in.first+n)&(len(in.ring)-1)] = e
	in.n.Store(int64(n + 1))
	in.mu.Unlock()
}

// pop takes the oldest entry.
func (in *injector) pop() (entry, bool) { return in.popIf(false) }

// popNew takes it if it is a task to begin or a callback.
func (in *injector) popNew() (entry, bool) { return in.popIf(true) }

func (in *injector) popIf(isNew bool) (e entry, ok bool) {
	if in.n.Load() == 0 { // a caller that needs certainty looks again
		return e, false
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	n := int(in.n.Load())
	if n == 0 || isNew && in.ring[in.first].f == nil {
		return e, false
	}
	e, in.ring[in.first] = in.ring[in.first], e
	in.first = (in.first + 1) & (len(in.ring) - 1)
	in.n.Store(int64(n - 1))
	in.taken++
	if n > prefetch.Crowd {
		in.aheadLocked()
	}
	if n == 1 && len(in.ring) > keepRing {
		in.ring, in.first = nil, 0
	}
	return e, true
}

// aheadLocked prefetches what the next fiber needs to go on, and the lines of those after it that say where that is.
func (in *injector) aheadLocked() {
	next := func(i int) *fiber { return in.ring[(in.first+i)&(len(in.ring)-1)].fiber }
	if s := next(0); s != nil {
		s.Fetch()
	}
	if s := next(1); s != nil {
		prefetch.Lines(s)
	}
}

// passed returns the number of entries that were ever taken.
func (in *injector) passed() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.taken
}

func (in *injector) waiting() int { return int(in.n.Load()) }

func (in *injector) len() int64 { return in.n.Load() }
