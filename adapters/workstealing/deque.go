package workstealing

import "github.com/braidgo/braid/internal/atomicx"

// A deque holds the forks of one worker. The worker pushes and pops at the bottom, and thieves steal from the top,
// oldest first. It is the deque of Chase and Lev, "Dynamic Circular Work-Stealing Deque" (SPAA 2005); the order of the
// accesses follows Lê, Pop, Cohen and Zappa Nardelli, "Correct and Efficient Work-Stealing for Weak Memory Models"
// (PPoPP 2013), but each access is sequentially consistent, as Go's atomics are. The differences: it never shrinks, the
// owner may take one fork in particular, and it takes the last fork without touching bottom.
//
// Invariant: the forks are at top <= i < bottom, in this order, at i modulo the size of the ring. The indices only grow
// and may wrap around, so they are compared by their difference. Invariant: a fork is in one deque at most, and there
// in one place. The CAS on top decides about the fork at top. The owner takes any other at the bottom by writing bottom
// before it reads top.
//
// A slot that is popped or stolen keeps its pointer until it is written again. This keeps only the record of a fork alive, since a
// taken fork is emptied.
type deque struct {
	top    atomicx.Uint64 // the oldest fork; only grows, by a CAS of thieves and, for the last fork, of the owner
	_      [56]byte       // thieves write above, the owner below
	bottom atomicx.Uint64 // after the youngest fork; written by the owner
	ring   atomicx.Pointer[ring]
	_      [48]byte
}

// A ring is written by the owner, in slots that hold no fork. A replaced ring is not written any more, so a thief that still
// reads it finds the old forks.
type ring []atomicx.Pointer[fork]

const firstRing = 64 // a power of two

func (r ring) slot(i uint64) *atomicx.Pointer[fork] { return &r[i&uint64(len(r)-1)] }

// init makes d empty. The first index is at.
func (d *deque) init(at uint64) {
	r := make(ring, firstRing)
	d.top.Store(at)
	d.bottom.Store(at)
	d.ring.Store(&r)
}

// push puts f at the bottom. Executed by the owner only.
func (d *deque) push(f *fork) {
	b := d.bottom.Load()
	r := *d.ring.Load()
	if b-d.top.Load() >= uint64(len(r)) { // a stale top is too small: at worst it grows too early
		r = d.grow(r, b)
	}
	if s := r.slot(b); s.Load() != f { // forks are recycled in order, so most are where they were
		s.Store(f)
	}
	d.bottom.Store(b + 1) // publishes f: pairs with the load in steal
}

func (d *deque) grow(old ring, b uint64) ring {
	r := make(ring, 2*len(old))
	for i := d.top.Load(); i != b; i++ { // a fork that is stolen during the loop is copied for nothing
		r.slot(i).Store(old.slot(i).Load())
	}
	d.ring.Store(&r)
	return r
}

// popIf takes f from the bottom, if it is there, and reports whether it did. Executed by the owner only.
func (d *deque) popIf(f *fork) bool {
	b := d.bottom.Load() - 1
	r := *d.ring.Load()
	// The fork in the slot may be stolen, but then take fails.
	return r.slot(b).Load() == f && d.take(b)
}

// pop takes the youngest fork, nil if there is none. Executed by the owner only.
func (d *deque) pop() *fork {
	b := d.bottom.Load() - 1
	if int64(b-d.top.Load()) < 0 { // empty, and it stays so
		return nil
	}
	r := *d.ring.Load()
	f := r.slot(b).Load()
	if !d.take(b) {
		return nil
	}
	return f
}

// take takes the fork at b, the bottom, if it is not stolen.
func (d *deque) take(b uint64) bool {
	t := d.top.Load()
	if t == b { // the last fork: as a thief, which leaves bottom where it is
		return d.top.CompareAndSwap(t, t+1)
	}
	d.bottom.Store(b) // before top is read again: a thief that comes now sees that it is taken, or we see the thief
	t = d.top.Load()
	if int64(b-t) > 0 {
		return true
	}
	taken := b == t && d.top.CompareAndSwap(t, t+1) // it has become the last
	d.bottom.Store(b + 1)
	return taken
}

// steal takes the oldest fork. If f is nil, retry says that another thief was quicker, and there may be more. Executed by any
// worker.
func (d *deque) steal() (f *fork, retry bool) {
	t := d.top.Load() // before bottom: pairs with take
	if int64(d.bottom.Load()-t) <= 0 {
		return nil, false
	}
	r := *d.ring.Load()
	f = r.slot(t).Load() // stale if top has moved on, but then the CAS fails, and f is not read before
	if !d.top.CompareAndSwap(t, t+1) {
		return nil, true
	}
	return f, false
}

// above reports whether there are forks at base or after it. It may be out of date on return. Executed by the owner only.
func (d *deque) above(base uint64) bool { return int64(d.bottom.Load()-base) > 0 && !d.empty() }

// below reports whether there are forks before base. It may be out of date on return.
func (d *deque) below(base uint64) bool { return int64(base-d.top.Load()) > 0 }

// empty may be out of date on return, unless the owner calls it.
func (d *deque) empty() bool { return int64(d.bottom.Load()-d.top.Load()) <= 0 }
