package runner

import "github.com/braidgo/braid/internal/atomicx"

// An Inbox holds the Items that arrive from other goroutines. It is a stack: producers push single Items, and the
// scheduler takes all Items at once. It also records whether the scheduler sleeps. -P> is a producer, -S> the
// scheduler.
//
//	nil    -P> items
//	items  -P> items
//	items  -S> nil      Take
//	nil    -S> asleep   Sleep; fails if there are items
//	asleep -P> items    and this producer owes the wake-up
//	asleep -S> nil      Rouse: woken by something else
//	any    -S> gone     Close: nothing is taken any more
//
// Invariant: a producer that replaces the marker asleep must wake the scheduler. So if an Item arrives while the
// scheduler sleeps, there is always a producer that is about to wake it. One word records both the Items and the sleep,
// so there is no separate flag to check.
type Inbox struct {
	head atomicx.Pointer[Item]
}

var asleep, gone = new(Item), new(Item)

// Push adds an Item, from any goroutine. If wake is true, the caller must wake the scheduler, because no other
// goroutine does. Push fails once the inbox is closed.
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
	if in.Empty() { // Sleep fails if an Item is pushed after this check
		return nil
	}
	return inOrder(in.head.Swap(nil))
}

// Close closes the inbox, and returns the last Items as Take does. After that Push fails.
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

// touched is a faster check than Empty. If it returns false, there is nothing to take.
func (in *Inbox) touched() bool { return in.head.Load() != nil }

// Empty reports whether there is nothing to take.
func (in *Inbox) Empty() bool {
	head := in.head.Load()
	return head == nil || head == asleep || head == gone
}

// Sleep marks the scheduler as asleep if the inbox is empty, and reports whether it did. After that the next producer
// wakes the scheduler.
func (in *Inbox) Sleep() bool { return in.head.CompareAndSwap(nil, asleep) }

// Rouse ends the sleep. It returns false if a producer was faster and wakes the scheduler.
func (in *Inbox) Rouse() bool { return in.head.CompareAndSwap(asleep, nil) }

// Asleep reports whether the scheduler still sleeps, which means that no producer has pushed since Sleep.
func (in *Inbox) Asleep() bool { return in.head.Load() == asleep }
