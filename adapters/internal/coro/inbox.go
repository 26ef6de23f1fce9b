package coro

import (
	"sync"

	"github.com/braidgo/braid/internal/atomicx"
)

// An Item is something to run: a task that is runnable, a task to begin, a callback. The latter two are used again.
type Item struct {
	next *Item
	task *Task // to resume; nil: to begin, with f; callback: there is none, call f
	f    func()
}

// callback is where the task would be.
var callback = new(Task)

var idleItems = sync.Pool{New: func() any { return new(Item) }}

// give gives back an Item that is not a task's.
func (it *Item) give() {
	*it = Item{}
	idleItems.Put(it)
}

// An Inbox is where everybody leaves Items for one scheduler: a stack that producers push on and the
// scheduler takes whole, and that says whether the scheduler sleeps. -P> is a producer, -S> the scheduler.
//
//	nil    -P> items
//	items  -P> items
//	items  -S> nil      Take
//	nil    -S> asleep   Sleep; fails if there are items
//	asleep -P> items    and this producer owes the wake-up
//	asleep -S> nil      Rouse: woken by something else
//
// Invariant: asleep is only ever replaced, so there is no moment in which an Item is in and the scheduler
// asleep without somebody owing it the wake-up. One word says both; there is no flag to re-check.
type Inbox struct {
	head atomicx.Pointer[Item]
}

var asleep = new(Item)

// Push leaves it, from any goroutine, and reports whether the caller has to wake the scheduler.
func (in *Inbox) Push(it *Item) (wake bool) {
	for {
		head := in.head.Load()
		it.next = head
		if head == asleep {
			it.next = nil
		}
		if in.head.CompareAndSwap(head, it) {
			return head == asleep
		}
	}
}

// Take removes all Items and returns them as a list, in the order in which they were pushed.
func (in *Inbox) Take() (first *Item) {
	if in.Empty() { // what has come just now is found out by Sleep
		return nil
	}
	for it := in.head.Swap(nil); it != nil; {
		it.next, first, it = first, it, it.next
	}
	return first
}

// Empty reports whether there was nothing to take.
func (in *Inbox) Empty() bool {
	head := in.head.Load()
	return head == nil || head == asleep
}

// Sleep reports whether the inbox is empty, and if so leaves word that the next producer wakes.
func (in *Inbox) Sleep() bool { return in.head.CompareAndSwap(nil, asleep) }

// Rouse takes that word back. False says that a producer has come first and wakes.
func (in *Inbox) Rouse() bool { return in.head.CompareAndSwap(asleep, nil) }

// Asleep reports whether the word is still there.
func (in *Inbox) Asleep() bool { return in.head.Load() == asleep }
