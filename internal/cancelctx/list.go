// Package cancelctx holds the contexts of package cancel, so that package suspend recognises them: a wait with such a context is
// a node in its list, and needs neither a function nor a channel.
package cancelctx

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/internal/outcome"
)

// A List holds Nodes to be notified of the end of a context. -A> is an Add, -E> an End. The zero List is empty.
//
//	open   -A> open
//	open   -E> ended    End takes one Node after another off the list, and notifies it
//	ended  -A> ended    refused
//
// Invariant: in an ended List one End is emptying the list, or has emptied it.
// Debt: the End that moved the List must notify the Nodes. A Node is notified by the End that took it off.
type List struct {
	mu     atomicx.Mutex
	reason atomicx.Pointer[error] // is nil while open; written under mu
	nodes  dlist.List[Listener]
}

// A Node is an entry of at most one List. It is part of its Listener, so an entry needs no allocation. A Node may be
// used again, after it has been zeroed, once a Stop has returned true.
type Node struct {
	list  *List // belongs to the owner of the Node
	place dlist.Node[Listener]
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
	n.list, n.place.Value = l, listener
	l.nodes.Push(&n.place)
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
	return n.list.nodes.Remove(&n.place)
}

// canceled is the reason of most ends.
var canceled = context.Canceled

// End ends l, and notifies all Nodes in the order in which they were added. A second End returns at once. A Listener may
// panic or exit its goroutine: all other Nodes are notified nevertheless, and then the panic goes on. err is what Err returns
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
	some := l.nodes.First() != nil // otherwise it stays empty
	l.mu.Unlock()
	if some {
		outcome.Each(l.notifyNext)
	}
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

// notifyNext notifies the first Node, and reports whether there may be another.
func (l *List) notifyNext() (more bool) {
	l.mu.Lock()
	n := l.nodes.Pop()
	last := l.nodes.First() == nil // an ended List stays empty
	l.mu.Unlock()
	if n != nil {
		n.Value.Ended()
	}
	return !last
}
