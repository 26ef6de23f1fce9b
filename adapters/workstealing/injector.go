package workstealing

import (
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/prefetch"
)

// An entry is a unit of work outside the deques: a fiber that was woken or has yielded, a new task, a callback, or a
// fork that is already claimed.
type entry struct {
	fiber *fiber // the fiber to resume, or nil
	f     func() // the new task or callback, or nil
	fork  *fork  // the claimed fork, if both fiber and f are nil
	woken bool   // the fiber was suspended
	call  bool   // f is a callback
}

// An injector is a first-in, first-out queue of runnable entries of the pool. The lock of a shard is a
// leaf in the lock order, and comes after the lock of the pool's injector.
type injector struct {
	mu    atomicx.Mutex
	n     atomicx.Int64 // the number of entries; written under mu, and read without it to skip an empty queue
	first int           // the index of the oldest entry; guarded by mu, as are the fields below
	taken int           // counts all entries that were ever taken
	ring  []entry       // a circular buffer; its size is a power of two
}

// keepRing is the largest size of a ring that is kept when it becomes empty.
const keepRing = 1 << 12

func (in *injector) push(e entry) {
	in.mu.Lock()
	in.pushLocked(int(in.n.Load()), e)
	in.mu.Unlock()
}

// pushLocked adds e behind n entries.
func (in *injector) pushLocked(n int, e entry) {
	if n == len(in.ring) {
		ring := make([]entry, max(64, 2*n))
		copy(ring, in.ring[in.first:])
		copy(ring[n-in.first:], in.ring[:in.first])
		in.ring, in.first = ring, 0
	}
	in.ring[(in.first+n)&(len(in.ring)-1)] = e
	in.n.Store(int64(n + 1))
}

// pushAll adds the entries that pop, the pop of a queue, removes: at most as many as fit into a queue, because its owner may push at the same
// time. Nobody else moves those entries meanwhile, so they stay in order.
func (in *injector) pushAll(pop func() (entry, bool)) {
	in.mu.Lock()
	defer in.mu.Unlock()
	n := int(in.n.Load())
	for range queueSize {
		e, ok := pop()
		if !ok {
			return
		}
		in.pushLocked(n, e)
		n++
	}
}

// pop removes and returns the oldest entry.
func (in *injector) pop() (entry, bool) { return in.popIf(false) }

// popNew removes and returns the oldest entry if it is a new task or a callback.
func (in *injector) popNew() (entry, bool) { return in.popIf(true) }

func (in *injector) popIf(isNew bool) (e entry, ok bool) {
	if in.n.Load() == 0 { // callers that must be certain check again
		return e, false
	}
	in.mu.Lock()
	if e, ok = in.removeLocked(isNew); ok {
		in.taken++
	}
	in.mu.Unlock()
	return e, ok
}

// moveFrom moves entries of the shard s to the end of in: only a part of a long shard, so that the locks are not held for long. It holds
// the lock of s, too. Otherwise a worker that has found in empty could take an entry of s behind an entry that is on its way.
func (in *injector) moveFrom(s *injector) {
	in.mu.Lock()
	defer in.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	n := int(in.n.Load())
	for range queueSize {
		e, ok := s.removeLocked(false)
		if !ok {
			return
		}
		in.pushLocked(n, e)
		n++
	}
}

// popAfter takes the oldest entry of the shard in. If the pool's injector, first, has entries, popAfter takes the oldest of these,
// because in may have had it before.
func (in *injector) popAfter(first *injector, isNew bool) (e entry, ok bool) {
	in.mu.Lock()
	isFirst := first.n.Load() == 0
	if isFirst {
		if e, ok = in.removeLocked(isNew); ok {
			in.taken++
		}
	}
	in.mu.Unlock()
	if isFirst {
		return e, ok
	}
	return first.popIf(isNew)
}

func (in *injector) removeLocked(isNew bool) (e entry, ok bool) {
	n := int(in.n.Load())
	if n == 0 || isNew && in.ring[in.first].f == nil {
		return e, false
	}
	e, in.ring[in.first] = in.ring[in.first], e
	in.first = (in.first + 1) & (len(in.ring) - 1)
	in.n.Store(int64(n - 1))
	if n > prefetch.Crowd {
		in.aheadLocked()
	}
	if n == 1 && len(in.ring) > keepRing {
		in.ring, in.first = nil, 0
	}
	return e, true
}

// aheadLocked prefetches the data of the next fiber, and the addresses of the data of the fiber after it.
func (in *injector) aheadLocked() {
	next := func(i int) *fiber { return in.ring[(in.first+i)&(len(in.ring)-1)].fiber }
	if s := next(0); s != nil {
		s.Fetch()
	}
	if s := next(1); s != nil {
		prefetch.Lines(s)
	}
}

// passed returns how many entries were ever taken.
func (in *injector) passed() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.taken
}

func (in *injector) len() int64 { return in.n.Load() }
