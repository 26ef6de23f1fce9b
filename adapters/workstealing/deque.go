package workstealing

import "github.com/braidgo/braid/internal/atomicx"

// A deque holds the forks of one worker, its owner. The owner pushes and pops at the bottom. Thieves steal from the
// top, oldest fork first. The algorithm is the deque of Chase and Lev, "Dynamic Circular Work-Stealing Deque" (SPAA
// 2005). The order of the accesses follows Lê, Pop, Cohen and Zappa Nardelli, "Correct and Efficient Work-Stealing for
// Weak Memory Models" (PPoPP 2013), but each access is sequentially consistent, as Go's atomics are. There are three
// differences: the deque never shrinks, the owner can pop one particular fork, and the owner takes the last fork
// without a write to bottom.
//
// Invariant: the forks are at the indices top <= i < bottom, oldest first, each in slot i modulo the size of the ring.
// Indices may wrap around, so the code compares their difference. Invariant: a fork is in at most one slot of one
// deque. The goroutine whose CAS advances top gets the fork that was at index top. The owner takes any other fork at
// the bottom by writing bottom before it reads top.
//
// When a fork is popped or stolen, its slot keeps the pointer until the slot is written again. This keeps only the
// record of the fork alive, because a fork is emptied when it is taken.
type deque struct {
	top    atomicx.Uint64 // the index of the oldest fork; only grows, by a CAS from a thief or, for the last fork, from the owner
	_      [56]byte       // thieves write the field above, and the owner writes those below
	bottom atomicx.Uint64 // the index after the youngest fork; only the owner writes it
	ring   atomicx.Pointer[ring]
	_      [48]byte
}

// Only the owner writes to a ring, and only to slots that hold no fork. A replaced ring is never written again, so a
// thief that still reads it finds the old forks.
type ring []atomicx.Pointer[fork]

const firstRing = 64 // a power of two

func (r ring) slot(i uint64) *atomicx.Pointer[fork] { return &r[i&uint64(len(r)-1)] }

// init makes d empty, with top and bottom at the given index.
func (d *deque) init(at uint64) {
	r := make(ring, firstRing)
	d.top.Store(at)
	d.bottom.Store(at)
	d.ring.Store(&r)
}

// push adds f at the bottom. Only the owner may call it.
func (d *deque) push(f *fork) {
	b := d.bottom.Load()
	r := *d.ring.Load()
	if b-d.top.Load() >= uint64(len(r)) { // a stale top is too small, so at worst the ring grows too early
		r = d.grow(r, b)
	}
	if s := r.slot(b); s.Load() != f { // forks are recycled in order, so the slot usually holds f already
		s.Store(f)
	}
	d.bottom.Store(b + 1) // publishes f; pairs with the load in steal
}

func (d *deque) grow(old ring, b uint64) ring {
	r := make(ring, 2*len(old))
	for i := d.top.Load(); i != b; i++ { // copying a fork that is stolen during the loop does no harm
		r.slot(i).Store(old.slot(i).Load())
	}
	d.ring.Store(&r)
	return r
}

// popIf removes f from the bottom and returns true, or returns false if f is not there. Only the owner may call it.
func (d *deque) popIf(f *fork) bool {
	b := d.bottom.Load() - 1
	r := *d.ring.Load()
	// The fork in the slot may have been stolen, but then take fails.
	return r.slot(b).Load() == f && d.popAt(b)
}

// pop removes and returns the youngest fork, or returns nil if there is none. Only the owner may call it.
func (d *deque) pop() *fork {
	b := d.bottom.Load() - 1
	if int64(b-d.top.Load()) < 0 { // the deque is empty, and only the owner pushes
		return nil
	}
	r := *d.ring.Load()
	f := r.slot(b).Load()
	if !d.popAt(b) {
		return nil
	}
	return f
}

// popAt removes the fork at b, the youngest, and returns true, or returns false if the fork was stolen.
func (d *deque) popAt(b uint64) bool {
	t := d.top.Load()
	if t == b { // the owner takes the last fork as a thief would, and leaves bottom unchanged
		return d.top.CompareAndSwap(t, t+1)
	}
	d.bottom.Store(b) // stored before top is read again, so that either a later thief sees the store, or the load below sees the thief
	t = d.top.Load()
	if int64(b-t) > 0 {
		return true
	}
	taken := b == t && d.top.CompareAndSwap(t, t+1) // the fork at b is the last now
	d.bottom.Store(b + 1)
	return taken
}

// steal removes and returns the oldest fork. If f is nil, retry reports whether another goroutine was faster and there
// may be more forks. Any worker may call it.
func (d *deque) steal() (f *fork, retry bool) {
	t := d.top.Load() // loaded before bottom; pairs with take
	if int64(d.bottom.Load()-t) <= 0 {
		return nil, false
	}
	r := *d.ring.Load()
	f = r.slot(t).Load() // f is stale if top has moved on, but then the CAS fails before f is used
	if !d.top.CompareAndSwap(t, t+1) {
		return nil, true
	}
	return f, false
}

// above reports whether there are forks at or after base. The result may be out of date on return. Only the owner may
// call it.
func (d *deque) above(base uint64) bool { return int64(d.bottom.Load()-base) > 0 && !d.empty() }

// below reports whether there are forks before base. The result may be out of date on return.
func (d *deque) below(base uint64) bool { return int64(base-d.top.Load()) > 0 }

// empty reports whether d holds no forks. The result may be out of date on return, unless the caller is the owner and d
// is empty.
func (d *deque) empty() bool { return int64(d.bottom.Load()-d.top.Load()) <= 0 }
