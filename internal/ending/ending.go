// Package ending is the list of those who are to be told of the end of something, a context as a rule, by whoever ends it.
package ending

import (
	"context"
	"sync/atomic"
	"unsafe"

	"github.com/braidgo/braid/internal/atomicx"
)

// contextType is the type of the contexts of package cancel, as the first word of the interface has it. Package suspend cannot
// ask for it there. It is written as the program begins, when goroutines may run already.
var (
	contextType atomic.Pointer[byte]
	listAt      uintptr // written before contextType
)

// SetContext says that it is tab, and where in such a context its List is.
func SetContext(tab unsafe.Pointer, offset uintptr) {
	listAt = offset
	contextType.Store((*byte)(tab))
}

// Of returns the List of the context that consists of these two words, nil if it is not of package cancel.
func Of(tab, data unsafe.Pointer) *List {
	if !IsContext(tab) {
		return nil
	}
	return (*List)(unsafe.Add(data, listAt))
}

// IsContext reports whether it is tab.
func IsContext(tab unsafe.Pointer) bool {
	return tab != nil && tab == unsafe.Pointer(contextType.Load())
}

// A List is of those who are to be told. -A> is an Add, -S> a Stop, -E> whoever ends it. The zero List is empty.
//
//	listed   -A> listed
//	listed   -E> ended    the first of the list is taken off and told, until none is left
//	ended    -A> ended    refused
//
// Invariant: ended implies that one party is taking the list apart, or has.
// Debt: whoever moves it to ended owes the calls. A Node is told by whoever takes it off.
type List struct {
	mu         atomicx.Mutex
	reason     atomicx.Pointer[error] // not nil: it has ended; written under mu
	head, tail *Node
}

// A Node is one of them. It lies in what it is about, so that to be told costs no allocation. It is in one list at a time,
// and may be used again, after being zeroed, once a Stop has said true.
type Node struct {
	list       *List // of whoever owns the Node
	who        Listener
	next, prev *Node // under the lock of the list; prev is the Node itself when it is in none any more
}

// A Listener is told, under no lock, once.
type Listener interface{ Ended() }

// Add has who told of the end by way of n. It reports false, and does nothing, if the end has come already.
func (l *List) Add(n *Node, who Listener) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Over() {
		return false
	}
	n.list, n.who = l, who
	if n.prev = l.tail; n.prev != nil {
		n.prev.next = n
	} else {
		l.head = n
	}
	l.tail = n
	return true
}

// List returns the one that n was added to, nil if to none.
func (n *Node) List() *List { return n.list }

// Stop takes n off. True says that its Listener will never be told; false, that it has been stopped before, was never
// added, or that the call has begun.
func (n *Node) Stop() bool {
	if n.list == nil {
		return false
	}
	n.list.mu.Lock()
	defer n.list.mu.Unlock()
	return n.takeLocked()
}

func (n *Node) takeLocked() bool {
	if n.prev == n {
		return false
	}
	if n.prev != nil {
		n.prev.next = n.next
	} else {
		n.list.head = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	} else {
		n.list.tail = n.prev
	}
	n.next, n.prev = nil, n
	return true
}

// canceled is the reason of most ends.
var canceled = context.Canceled

// End tells all, in the order in which they were added. The second call finds the first at work, or nothing left to do. If
// a Listener panics or ends its goroutine, the others are told all the same, and then that goes on. err is what Err returns
// to them, nil if the caller cannot say.
func (l *List) End(err error) {
	reason := &canceled
	if err != canceled {
		own := err
		reason = &own
	}
	l.mu.Lock()
	if l.Over() {
		l.mu.Unlock()
		return
	}
	l.reason.Store(reason)
	l.tellAll()
}

// Over reports whether the end has come.
func (l *List) Over() bool { return l.reason.Load() != nil }

// Err returns why the end has come, nil if it has not, or if that is not known.
func (l *List) Err() error {
	if reason := l.reason.Load(); reason != nil {
		return *reason
	}
	return nil
}

// tellAll is called with the lock held, and returns without it.
func (l *List) tellAll() {
	returned := false
	defer func() {
		if !returned { // one of them has panicked
			l.mu.Lock()
			l.tellAll()
		}
	}()
	for n := l.head; n != nil; n = l.head {
		n.takeLocked()
		last := l.head == nil // and will be, as nobody is added any more
		l.mu.Unlock()
		n.who.Ended()
		if last {
			returned = true
			return
		}
		l.mu.Lock()
	}
	l.mu.Unlock()
	returned = true
}
