package workstealing

import "github.com/braidgo/braid/internal/atomicx"

// A queue holds runnable entries of one worker, its owner, first in, first out. Only the owner pushes. The owner and all
// other workers pop at the head, so no order of pops can keep an entry back. The algorithm is the bounded queue of
// Vyukov (1024cores.net, 2010), with one producer: each slot has a state, so an entry may be larger than an atomic word.
//
// The state of the slot for index i, which is slot i modulo the size. -O> is the owner, -W> any worker:
//
//	free i  -O> full i          push
//	full i  -W> full i, taken   a CAS moves head from i to i+1; the entry belongs to that worker
//	taken   -W> free i+size     the worker has copied the entry, and cleared the slot
//
// Invariant: the entries that nobody has taken are at the indices head <= i < tail, oldest first. A full queue refuses
// an entry, also while the worker that has taken the oldest entry still copies it.
type queue struct {
	head  atomicx.Uint64 // the index of the oldest entry; only grows
	_     [56]byte       // all workers write the field above, and only the owner writes tail
	tail  uint64         // the index after the youngest entry
	slots []slot         // the size is a power of two
}

type slot struct {
	state atomicx.Uint64
	entry entry // written by the worker that may change the state
}

// queueSize is the size of a worker's queue. As a turn has almost as many picks, an entry does not stay for much longer than a turn.
const queueSize = 64

// The low bits of a state. The other bits are the index.
const (
	full    = 1
	fullNew = 3 // full, and the entry is a new task or a callback
)

func (q *queue) init(size int) {
	q.slots = make([]slot, size)
	for i := range q.slots {
		q.slots[i].state.Store(4 * uint64(i))
	}
}

func (q *queue) slot(i uint64) *slot { return &q.slots[i&uint64(len(q.slots)-1)] }

// push adds e and returns true, or returns false if q is full. Only the owner may call it.
func (q *queue) push(e entry) bool {
	s := q.slot(q.tail)
	if s.state.Load() != 4*q.tail {
		return false
	}
	s.entry = e
	state := 4*q.tail + full
	if e.f != nil {
		state = 4*q.tail + fullNew
	}
	q.tail++
	s.state.Store(state) // publishes e; pairs with the load in oldest
	return true
}

// oldest returns the index and the state of the oldest entry. ok is false if q was empty at a moment during the call.
func (q *queue) oldest() (i, state uint64, ok bool) {
	for {
		i = q.head.Load()
		state = q.slot(i).state.Load()
		if state&^2 == 4*i+full {
			return i, state, true
		}
		if q.head.Load() == i { // nobody has taken entry i, so nobody has pushed it when the state was loaded
			return i, state, false
		}
	}
}

// pop removes and returns the oldest entry.
func (q *queue) pop() (entry, bool) { return q.popIf(full) }

// popNew removes and returns the oldest entry if it is a new task or a callback.
func (q *queue) popNew() (entry, bool) { return q.popIf(fullNew) }

// popIf removes and returns the oldest entry if its state has all the given bits.
func (q *queue) popIf(bits uint64) (e entry, ok bool) {
	for {
		i, state, some := q.oldest()
		if !some || state&bits != bits {
			return e, false
		}
		if q.head.CompareAndSwap(i, i+1) {
			s := q.slot(i)
			e, s.entry = s.entry, e
			s.state.Store(4 * (i + uint64(len(q.slots)))) // pairs with the load in push
			return e, true
		}
	}
}

// empty reports whether q holds no entry. The result may be out of date on return.
func (q *queue) empty() bool {
	_, _, some := q.oldest()
	return !some
}

// len returns the number of entries. Only the owner may call it. There may be fewer on return.
func (q *queue) len() int { return int(q.tail - q.head.Load()) }
