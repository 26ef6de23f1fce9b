// Package cancel provides a context that a great many tasks can wait with: what each costs it is a list node.
package cancel

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// New returns a context that is done once cancel is called or parent is done, whichever comes first, and that differs
// from one of context.WithCancelCause in that it has a method
//
//	AfterFunc(f func()) (stop func() bool)
//
// which suspended tasks find, and which has no goroutine per f, neither while it waits nor when it is called: f is
// called by whoever ends the context. Registering, stopping and calling each take constant time. cancel(cause) ends
// it with context.Canceled and the given cause, context.Canceled if that is nil; the first cause stays. When cancel
// returns, Done is closed and every f registered before has been called, or is being called by another cancel that
// came first. cancel must be called at some time, or else parent keeps the context until it is done itself.
//
// AfterFunc has f called once: after Done is closed, under no lock, in the order of registration, before the cancel
// that ended the context returns; or at once, before AfterFunc returns, if all that has happened already. f should be
// quick and must not suspend. It may do anything to the context: cancel it, register, stop. If f panics or ends its
// goroutine, the others are called all the same, and then the panic goes on to the caller of cancel. A stop that
// returns true says that f will never be called, and the context keeps nothing of it; false, that it has been stopped
// before, or that its call has begun.
//
// If parent is such a context, or a context.WithValue of one, or foreign to package context with an AfterFunc of its
// own, its end is passed on by whoever ends it. From any other parent Done and Err are passed on as package context
// does, and the calls are made on one goroutine.
//
// Contexts of package context that are derived from this one cost no goroutine either.
func New(parent context.Context) (ctx context.Context, cancel func(cause error)) {
	c := new(cancellable)
	l := &link{Context: parent, c: c}
	inner, cancelInner := context.WithCancelCause(l)
	c.Context = inner
	stop := func() bool { return false }
	switch {
	case inner.Err() != nil:
		c.end()
	case parent.Done() != nil && !l.used:
		stop = c.follow(parent, inner)
	}
	return c, func(cause error) {
		stop()
		cancelInner(cause)
		c.end()
	}
}

// A cancellable is a context of package context, which knows how to be one, and the list of what is to be called
// after it. -A> is an AfterFunc, -S> a stop, -E> whoever ends the context.
//
//	listed   -A> listed
//	listed   -E> ended    the first of the list is taken off and called, until none is left
//	ended    -A> ended    called at once
//
// Invariant: ended implies that the context is done and that one party is taking the list apart, or has.
// Debt: whoever moves it to ended owes the calls. A function is called by whoever takes its node off the list.
type cancellable struct {
	context.Context
	mu         atomicx.Mutex
	ended      bool
	head, tail *node
}

type node struct {
	c          *cancellable
	f          func() // nil: not in the list
	next, prev *node
}

// AfterFunc has f called after c is done, see New.
func (c *cancellable) AfterFunc(f func()) (stop func() bool) {
	if f == nil {
		panic("cancel: nil function")
	}
	n := &node{c: c, f: f}
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		n.f = nil
		f()
		return n.stop
	}
	if n.prev = c.tail; n.prev != nil {
		n.prev.next = n
	} else {
		c.head = n
	}
	c.tail = n
	c.mu.Unlock()
	return n.stop
}

func (n *node) stop() bool {
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	return n.takeLocked() != nil
}

// takeLocked takes n off the list, if it is there, and returns its function.
func (n *node) takeLocked() (f func()) {
	if n.f == nil {
		return nil
	}
	if n.prev != nil {
		n.prev.next = n.next
	} else {
		n.c.head = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	} else {
		n.c.tail = n.prev
	}
	f, n.f, n.next, n.prev = n.f, nil, nil, nil
	return f
}

// end is called when the context is done. The second call finds the first at work, or nothing left to do.
func (c *cancellable) end() {
	c.mu.Lock()
	first := !c.ended
	c.ended = true
	c.mu.Unlock()
	if first {
		c.callAll()
	}
}

func (c *cancellable) callAll() {
	returned := false
	defer func() {
		if !returned { // one of them has panicked
			c.callAll()
		}
	}()
	for f := c.next(); f != nil; f = c.next() {
		f()
	}
	returned = true
}

func (c *cancellable) next() func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.head == nil {
		return nil
	}
	return c.head.takeLocked()
}

// self is the key by which a context finds the innermost cancellable that it descends from.
type self struct{}

// Value implements context.Context.
func (c *cancellable) Value(key any) any {
	if key == (self{}) {
		return c
	}
	return c.Context.Value(key)
}

// String is what fmt prints, which would look at the list otherwise.
func (c *cancellable) String() string { return "cancel.New" }

// follow has c end after inner has, which parent ends: its own list if it has one, as it has ended inner by then; and
// otherwise inner, since a parent of package context may end its children in any order.
func (c *cancellable) follow(parent, inner context.Context) (stop func() bool) {
	if p, ok := parent.Value(self{}).(*cancellable); ok && p.Done() == parent.Done() { // or else what is in between can end
		return p.AfterFunc(c.end)
	}
	return context.AfterFunc(inner, c.end)
}

// A link is the parent as the inner context sees it. Package context asks its AfterFunc if the parent is foreign to
// it; and then asks once for both of us, since a parent may call back in any order, and the inner context has to be
// done first.
type link struct {
	context.Context
	c    *cancellable
	used bool
}

// AfterFunc is called, if at all, before context.WithCancelCause returns.
func (l *link) AfterFunc(f func()) (stop func() bool) {
	l.used = true
	both := func() {
		f()
		l.c.end()
	}
	if a, ok := l.Context.(interface {
		AfterFunc(func()) (stop func() bool)
	}); ok {
		return a.AfterFunc(both)
	}
	return context.AfterFunc(l.Context, both)
}

// Lazily is suspend.Lazily, the other way to make cancellation cheap: a context like ctx which, with operations that
// allow for it, cancels a wait only when a Resume meets it.
func Lazily(ctx context.Context) context.Context { return suspend.Lazily(ctx) }
