// Package cancelctx holds the contexts of package cancel, for package suspend to know them: a wait with such a context is
// a node in its list, and needs neither a function nor a channel.
package cancelctx

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
)

// A List holds Nodes to be notified of the end of a context. -A> is an Add, -E> an End. The zero List is empty.
//
//	open   -A> open
//	open   -E> ended    End takes one Node after another off the list, and notifies it
//	ended  -A> ended    refused
//
// Invariant: in an ended List one End is emptying the list, or has emptied it.
// Debt: the End that moved the List owes the notifications. A Node is notified by the End that took it off.
type List struct {
	mu         atomicx.Mutex
	reason     atomicx.Pointer[error] // nil: open; written under mu
	head, tail *Node
}

// A Node is an entry of one List at a time. It is part of its Listener, so an entry needs no allocation. A Node may be
// used again, after it has been zeroed, once a Stop has returned true.
type Node struct {
	list       *List // belongs to the owner of the Node
	listener   Listener
	next, prev *Node // under the lock of the list; prev is the Node itself once it was taken off
}

// A Listener is notified once, under no lock.
type Listener interface{ Ended() }

// Add puts n at the end of l, for the end of l to notify it. If l has ended already, Add returns false and does nothing.
func (l *List) Add(n *Node, listener Listener) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Over() {
		return false
	}
	n.list, n.listener = l, listener
	if n.prev = l.tail; n.prev != nil {
		n.prev.next = n
	} else {
		l.head = n
	}
	l.tail = n
	return true
}

// List returns the List that n was added to, nil if there is none.
func (n *Node) List() *List { return n.list }

// Stop takes n off its list. After true, n is never notified. False says that n was stopped before, or never added, or that
// its notification has begun.
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

// End ends l, and notifies all Nodes in the order in which they were added. A second End returns at once. A Listener may
// panic or exit its goroutine: the others are notified all the same, and then the panic goes on. err is what Err returns
// from then on; nil says that the reason is not known here.
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
	l.notifyAll()
}

// Over reports whether l has ended.
func (l *List) Over() bool { return l.reason.Load() != nil }

// Err returns the reason of the end. It is nil before the end, and if the reason is not known.
func (l *List) Err() error {
	if reason := l.reason.Load(); reason != nil {
		return *reason
	}
	return nil
}

// notifyAll is called with the lock held, and returns without it.
func (l *List) notifyAll() {
	returned := false
	defer func() {
		if !returned { // a Listener has panicked
			l.mu.Lock()
			l.notifyAll()
		}
	}()
	for n := l.head; n != nil; n = l.head {
		n.takeLocked()
		last := l.head == nil // an ended List stays empty
		l.mu.Unlock()
		n.listener.Ended()
		if last {
			returned = true
			return
		}
		l.mu.Lock()
	}
	l.mu.Unlock()
	returned = true
}
