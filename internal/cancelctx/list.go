// Package cancelctx implements the contexts of package cancel. Package suspend recognises these contexts, so that a wait adds only a node
// to the context's list, and needs neither a function nor a channel.
package cancelctx

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/internal/outcome"
)

// A List holds the Nodes that are notified when a context ends. The zero List is open and empty. -A> is an Add, -E> an End.
//
//	open   -A> open
//	open   -E> ended    End removes each Node from the list, and notifies it
//	ended  -A> ended    Add returns false
//
// Invariant: an ended List is empty, or one End is emptying it.
// Debt: the End that ends the List must notify each Node that it removes.
type List struct {
	mu     atomicx.Mutex
	reason atomicx.Pointer[error] // is nil while the List is open; written under mu
	nodes  dlist.List[Listener]
}

// A Node is an entry of at most one List. A Node is embedded in its Listener, so that Add need not allocate. Once Stop has returned true,
// the Node may be zeroed and used again.
type Node struct {
	list  *List // accessed only by the owner of the Node
	place dlist.Node[Listener]
}

// A Listener is notified of the end of a List by one call of Ended, under no lock. Ended may append to the list last what remains to be
// done after all Listeners have been notified.
type Listener interface {
	Ended(last []Inheritor) []Inheritor
}

// An Inheritor is a suspend.Inheritor, which serves the waiters behind a cancelled one. It must not do so before all Listeners have
// been notified, because it might hand a lock over to a waiter that is about to be cancelled, too.
type Inheritor interface{ Inherit() }

// Add appends n to l, so that End notifies listener. If l has ended already, Add returns false and changes nothing.
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

// List returns the List to which n was added, or nil if there is none.
func (n *Node) List() *List { return n.list }

// Stop removes n from its List. If Stop returns true, n will never be notified. If Stop returns false, n was stopped before or never added,
// or its notification has begun.
func (n *Node) Stop() bool {
	if n.list == nil {
		return false
	}
	n.list.mu.Lock()
	defer n.list.mu.Unlock()
	return n.list.nodes.Remove(&n.place)
}

// canceled is the reason for which most Lists end. End stores its address, so that it need not allocate.
var canceled = context.Canceled

// End ends l, and notifies all Nodes in the order in which they were added. A second End does nothing. If a Listener panics or calls
// runtime.Goexit, End still notifies all other Nodes, and then continues the panic or exit. The parameter err is the error that Err returns
// from then on. It is nil if the caller cannot determine the reason.
func (l *List) End(err error) { inherit(l.end(err, nil)) }

// end is like End, but does not call the Inheritors. It appends them to last.
func (l *List) end(err error, last []Inheritor) []Inheritor {
	reason := &canceled
	if err != canceled {
		own := err
		reason = &own
	}
	l.mu.Lock()
	if l.Over() {
		l.mu.Unlock()
		return last
	}
	l.reason.Store(reason)
	some := l.nodes.First() != nil // an ended List without nodes stays empty
	l.mu.Unlock()
	if some {
		returned := false
		defer func() {
			if !returned {
				inherit(last)
			}
		}()
		outcome.Each(func() (more bool) {
			last, more = l.notifyNext(last)
			return more
		})
		returned = true
	}
	return last
}

func inherit(last []Inheritor) {
	for _, i := range last {
		i.Inherit()
	}
}

// Over reports whether l has ended.
func (l *List) Over() bool { return l.reason.Load() != nil }

// Err returns the error with which l has ended. It returns nil if l has not ended, or if the reason is not known.
func (l *List) Err() error {
	if reason := l.reason.Load(); reason != nil {
		return *reason
	}
	return nil
}

// notifyNext removes and notifies the first Node. It reports whether there may be another Node.
func (l *List) notifyNext(last []Inheritor) (_ []Inheritor, more bool) {
	l.mu.Lock()
	n := l.nodes.Pop()
	more = l.nodes.First() != nil // an ended List stays empty
	l.mu.Unlock()
	if n != nil {
		last = n.Value.Ended(last)
	}
	return last, more
}
