package runner

import "github.com/braidgo/braid/internal/atomicx"

// An Inbox holds the Items that arrive from other goroutines: a stack that producers push on and the scheduler takes
// whole. It also says whether the scheduler sleeps. -P> is a producer, -S> the scheduler.
//
//	nil    -P> items
//	items  -P> items
//	items  -S> nil      Take
//	nil    -S> asleep   Sleep; fails if there are items
//	asleep -P> items    and this producer owes the wake-up
//	asleep -S> nil      Rouse: woken by something else
//	any    -S> gone     Close: nothing is taken any more
//
// Invariant: asleep is only ever replaced, so there is no moment in which an Item is in and the scheduler asleep
// without a producer that must wake it. One word says both; there is no flag to re-check.
type Inbox struct {
	head atomicx.Pointer[Item]
}

var asleep, gone = new(Item), new(Item)

// Push leaves it, from any goroutine. If wake is true, the caller must wake the scheduler: otherwise nobody does. Push
// fails once the inbox is closed.
func (in *Inbox) Push(it *Item) (wake, ok bool) {
	for {
		head := in.head.Load()
		switch head {
		case gone:
			return false, false
		case asleep:
			it.next = nil
		default:
			it.next = head
		}
		if in.head.CompareAndSwap(head, it) {
			return head == asleep, true
		}
	}
}

// Take removes all Items and returns them as a list, in the order in which they were pushed.
func (in *Inbox) Take() (first *Item) {
	if in.Empty() { // Sleep finds an Item that is pushed after this
		return nil
	}
	return inOrder(in.head.Swap(nil))
}

// Close is the last Take.
func (in *Inbox) Close() (first *Item) {
	head := in.head.Swap(gone)
	if head == asleep || head == gone {
		return nil
	}
	return inOrder(head)
}

func inOrder(stack *Item) (first *Item) {
	for it := stack; it != nil; {
		it.next, first, it = first, it, it.next
	}
	return first
}

// touched is quicker than Empty. False: there is nothing to take.
func (in *Inbox) touched() bool { return in.head.Load() != nil }

// Empty reports whether there was nothing to take.
func (in *Inbox) Empty() bool {
	head := in.head.Load()
	return head == nil || head == asleep || head == gone
}

// Sleep reports whether the inbox is empty. If it is, the next producer wakes the scheduler.
func (in *Inbox) Sleep() bool { return in.head.CompareAndSwap(nil, asleep) }

// Rouse ends the sleep. False means that a producer was first and wakes the scheduler.
func (in *Inbox) Rouse() bool { return in.head.CompareAndSwap(asleep, nil) }

// Asleep reports whether the scheduler still sleeps: no producer has pushed since Sleep.
func (in *Inbox) Asleep() bool { return in.head.Load() == asleep }

// Closed reports whether Close has been called.
func (in *Inbox) Closed() bool { return in.head.Load() == gone }
