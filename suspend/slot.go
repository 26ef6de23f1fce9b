package suspend

import "reflect"

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
	nodes  *list     // and those for others
	v      T
	err    error
}

// A list holds a task's objects of each type but one.
type list struct {
	x    any
	next *list
}

func (l *list) len() (n int) {
	for ; l != nil; l = l.next {
		n++
	}
	return n
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
