package suspend

import (
	"reflect"

	"github.com/braidgo/braid/internal/atomicx"
)

// A Resumer resumes one suspension, once. It is a small value, which may be copied, stored, compared and used as a map key. The
// zero Resumer resumes nothing.
type Resumer[T any] struct {
	slot *slot[T]
	wait state           // the open state of the word, which Resume replaces
	done <-chan struct{} // the Done channel of the context, or nil if Resume need not check it
}

// Resume ends the suspension with (v, err) and reports whether it did. Exactly one event ends a suspension: a Resume, the
// cancellation, or the return of a value by block. True means that Suspend returns (v, err), even if its context has ended by then.
// False means that nothing was delivered, and that the caller still owns v.
//
// Resume does not suspend or block, and runs no user code. It makes the waiting task runnable by a call of Unpark. Resume may be
// called from any goroutine and under any lock. It may be called before block has returned, after Suspend has returned, and after
// the task and its scheduler have ended.
//
// A Resume that returns true synchronizes before the return of its Suspend.
func (r Resumer[T]) Resume(v T, err error) bool { return r.resume(v, err, false) }

// Spawner returns the scheduler whose timers the waiter uses. It is the scheduler of the waiting task, or the executor of a Then,
// as for After.
func (r Resumer[T]) Spawner() Spawner {
	if s := spawnerOf(r.slot.b.task); s != nil {
		return s
	}
	return Goroutines
}

// resume implements Resume. If freed is true, the node of r was taken off its queue.
func (r Resumer[T]) resume(v T, err error, freed bool) bool {
	s := r.slot
	if s == nil {
		return false
	}
	if r.done != nil && r.contextEnded() {
		return false
	}
	word := &s.b.word
	if _, empty := any(&s.v).(*struct{}); empty && err == nil && !s.shared {
		if !word.deliverNothing(r.wait) {
			return false
		}
	} else {
		if !word.claim(r.wait) {
			return false
		}
		s.v, s.err, s.hit, s.freed = v, err, s.shared, freed
		word.deliver(r.wait)
	}
	s.b.task.Unpark()
	return true
}

// contextEnded reports whether the context of the wait has ended. If so, it cancels the wait, because the callback of the context may be
// late, and a lazy wait has none. r.done must not be nil.
func (r Resumer[T]) contextEnded() bool {
	if !atomicx.Closed(r.done) {
		return false
	}
	if b := r.slot.b; b.word.cancel(r.wait) {
		b.task.Unpark()
	}
	return true
}

// A slot is the place where the value of a wait arrives. It belongs to its waiter for ever, so that a stale Resumer still reads the
// right word, and fails. The resumer that has claimed the word writes v, err, hit and freed. The task reads and zeroes these fields
// in the next generation.
type slot[T any] struct {
	b      *waiter
	shared bool      // never changes; true if several slots share the word, so that the resumer must set hit
	hit    bool      // the wait was resumed by this slot; written like v
	freed  bool      // the node was taken off its queue; written like v
	queued bool      // node is in use; only the task accesses queued, owes, node and nodes
	owes   bool      // the wait has heirs
	node   queued[T] // a *node[T, P], for the type P of the last Push
	nodes  *list     // holds the nodes for other types P
	v      T
	err    error
}

// slotOf returns the slot of b for values of type T. A task waits for few types, so a list is the fastest lookup.
func slotOf[T any](b *binding) *slot[T] {
	if s, ok := b.slot.(*slot[T]); ok {
		return s
	}
	return otherSlotOf[T](b)
}

func otherSlotOf[T any](b *binding) *slot[T] {
	for l := b.slots; l != nil; l = l.next {
		if s, ok := l.x.(*slot[T]); ok {
			return s
		}
	}
	s := &slot[T]{b: &b.waiter}
	if b.slot == nil {
		b.slot = s
	} else {
		b.slots = &list{s, b.slots}
	}
	if reflect.TypeFor[T]().Size() > keptSize || b.slots.len() >= keptSlots {
		b.large = true
	}
	return s
}

// Between two tasks, a coroutine with more or larger slots than this drops them; otherwise thousands of idle coroutines would
// retain them.
const (
	keptSlots = 8
	keptSize  = 1 << 10
)

// shrink drops the slots between two tasks if they exceed these limits.
func (b *binding) shrink() {
	if b.large {
		b.large, b.slot, b.slots = false, nil, nil
	}
}

// block runs f, the block of a Suspend, and returns its results. The result ok is true if there is no need to wait.
func (s *slot[T]) block(b *binding, f func(Resumer[T]) (T, bool), r Resumer[T]) (v T, ok bool) {
	s.abandonNode()
	began := r.wait
	b.doing = inBlock
	defer func() {
		if b.doing == inBlock { // f has panicked or exited
			b.doing = elsewhere
			s.giveUp(b, began)
		}
	}()
	v, ok = f(r)
	b.doing = elsewhere
	if ok && !b.word.withdraw(r.wait) && !b.word.isCancelled(r.wait) {
		s.giveUp(b, r.wait)
		panic("suspend: block returned a value after its Resumer was called")
	}
	if ok {
		s.abandonNode() // a block that returns a value should have queued no node
	}
	return v, ok
}

// giveUp ends a wait whose block has failed. It also gives up the slot, because a resumer may still write to it.
func (s *slot[T]) giveUp(b *binding, began state) {
	b.word.abandon(began)
	if b.slot == any(s) {
		b.slot = nil
	}
	for l := &b.slots; *l != nil; l = &(*l).next {
		if (*l).x == any(s) {
			*l = (*l).next
			return
		}
	}
}

// takeValue returns the value that resumed the wait, and empties the slot or the node. The argument is the state with which the wait
// began.
func (s *slot[T]) takeValue(began state) (v T, err error) {
	if s.owes {
		s.owes = false
		s.b.settle()
	}
	if !s.b.word.inNode(began) {
		return s.takeOwn()
	}
	s.queued = false
	return s.node.takeValue(), nil
}

// takeOwn returns the value of the slot and empties it. It does not use s.b, since the waiter of a shared slot may already serve
// another goroutine.
func (s *slot[T]) takeOwn() (v T, err error) {
	var zero T
	v, err = s.v, s.err
	s.v, s.err = zero, nil
	switch {
	case s.freed:
		s.freed = false
		s.freeNode()
	case err == nil || s.shared: // the node may still be in its queue, and no Remove will follow
		s.abandonNode()
	}
	return v, err
}

// freeNode makes the node available again, after its wait has ended and it was taken off its queue.
func (s *slot[T]) freeNode() {
	if s.queued {
		s.queued = false
		s.node.free()
	}
}

// abandonNode leaves the node in its queue if it was not removed from there. The next Push then uses another node.
func (s *slot[T]) abandonNode() {
	if s.queued {
		s.queued, s.node = false, nil
	}
}

// queued is the interface through which a slot uses its node.
type queued[T any] interface {
	takeValue() T
	free()
	queue() any // returns the Queue, for the ledger
}
