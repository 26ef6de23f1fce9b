package suspend

import (
	"reflect"

	"github.com/braidgo/braid/internal/atomicx"
)

// A Resumer resumes one suspension, once. It is a small value: copy it, store it, compare it, use it as
// a map key. The zero Resumer resumes nothing.
type Resumer[T any] struct {
	slot *slot[T]
	wait state           // the open state of the word that Resume replaces
	done <-chan struct{} // the Done channel of the wait; nil if the context never ends, or calls its waiters itself
}

// Resume ends the suspension with (v, err) and reports whether it did. Of all Resumes of a suspension,
// its cancellation and the end of its block, exactly one wins. True is a promise: Suspend returns
// (v, err), even if its context is done by then. False means that nothing was delivered: v is still the
// caller's.
//
// Resume never suspends or blocks, and it runs no code of users. It decides, and makes the waiting task runnable by its
// Unpark. It may be called from any goroutine and under any lock, before block has returned, after
// Suspend has returned, and after the task and its scheduler have ended.
//
// What happened before a Resume that returned true happened before the return of its Suspend.
func (r Resumer[T]) Resume(v T, err error) bool { return r.resume(v, err, false) }

// Spawner returns the scheduler whose timers the waiter uses: the scheduler of its task, or the executor of a Then, as After does.
func (r Resumer[T]) Spawner() Spawner {
	if s := spawnerOf(r.slot.b.task); s != nil {
		return s
	}
	return Goroutines
}

// resume is Resume; freed says that r was queued, and is so no more.
func (r Resumer[T]) resume(v T, err error, freed bool) bool {
	s := r.slot
	if s == nil {
		return false
	}
	if r.done != nil && r.over() {
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

// over reports whether the context of the wait, which has a Done channel, is done. If it is, over cancels the wait: the
// context may call back late, on a goroutine, or never, if the wait is lazy.
func (r Resumer[T]) over() bool {
	if !atomicx.Closed(r.done) {
		return false
	}
	if b := r.slot.b; b.word.cancel(r.wait) {
		b.task.Unpark()
	}
	return true
}

// A slot is where the value of a wait arrives. It belongs to its waiter for ever, so a stale Resumer that looks at it finds
// the right word to fail on. The resumer that has claimed the word writes v, err, hit and freed, and the task reads and
// zeroes them in the next generation.
type slot[T any] struct {
	b      *waiter
	shared bool      // never changes: other slots are waited for on the same word, so the claimer sets hit
	hit    bool      // like v
	freed  bool      // like v: the node in use was taken off before
	queued bool      // node is in use; the task's own, like the rest
	node   queued[T] // a *node[T, P], of the P that was queued with last
	nodes  *list     // nodes of other types
	v      T
	err    error
}

// slotOf finds the slot of b for values of type T. Tasks wait for few types: a list is quickest.
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

// Between two tasks a coroutine keeps this many slots at most, each for a value of this size at most: thousands of
// coroutines are kept.
const (
	keptSlots = 8
	keptSize  = 1 << 10
)

// shrink gives up the slots between two tasks if they are more than are kept.
func (b *binding) shrink() {
	if b.large {
		b.large, b.slot, b.slots = false, nil, nil
	}
}

// block runs f, and reports its result if there is no need to wait.
func (s *slot[T]) block(b *binding, f func(Resumer[T]) (T, bool), r Resumer[T]) (v T, ok bool) {
	s.abandonNode()
	b.blocked = true
	returned := false
	defer func() {
		b.blocked = false
		if !returned {
			s.giveUp(b, r.wait)
		}
	}()
	v, ok = f(r)
	returned = true
	if ok && !b.word.withdraw(r.wait) && !b.word.isCancelled(r.wait) {
		s.giveUp(b, r.wait)
		panic("suspend: block returned a value after its Resumer was called")
	}
	if ok {
		s.abandonNode() // there should be none
	}
	return v, ok
}

// giveUp ends a wait whose block did not return, and gives up the slot: a resumer may be writing to it.
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

// take empties the slot, or the node, after a wait that began with the state began and was resumed.
func (s *slot[T]) take(began state) (v T, err error) {
	if !s.b.word.inNode(began) {
		return s.takeOwn()
	}
	s.queued = false
	return s.node.take(), nil
}

// takeOwn empties the slot. A shared one may have lent its waiter to another goroutine by now.
func (s *slot[T]) takeOwn() (v T, err error) {
	var zero T
	v, err = s.v, s.err
	s.v, s.err = zero, nil
	switch {
	case s.freed:
		s.freed = false
		s.release()
	case err == nil || s.shared: // the node may still be in its queue, and nobody comes to Remove it
		s.abandonNode()
	}
	return v, err
}

// release makes the node of a wait free again, which has ended and is in the queue no more.
func (s *slot[T]) release() {
	if s.queued {
		s.queued = false
		s.node.release()
	}
}

// abandonNode leaves to its queue a node that was not removed from it: its wait failed, and its primitive did not do its
// part.
func (s *slot[T]) abandonNode() {
	if s.queued {
		s.queued, s.node = false, nil
	}
}

// queued is a node, to its slot.
type queued[T any] interface {
	take() T
	release()
	queue() any // the ledger shows it
}
