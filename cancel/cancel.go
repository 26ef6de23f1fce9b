// Package cancel provides a context that a great many tasks can wait with: what each costs it is a list node.
package cancel

import (
	"context"
	"unsafe"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/ending"
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
// own, its end is passed on by whoever ends it. (Such an AfterFunc must not call back before it returns, unless on another
// goroutine: package context holds a lock meanwhile.) From any other parent Done and Err are passed on as package context
// does, and the calls are made on one goroutine.
//
// Contexts of package context that are derived from this one cost no goroutine either. New panics if parent is nil.
func New(parent context.Context) (ctx context.Context, cancel func(cause error)) {
	if parent == nil {
		panic("cancel: nil parent")
	}
	c := &cancellable{Context: parent}
	if parent.Done() == nil {
		return c, c.cancel
	}
	in := &inner{link: link{Context: parent, c: c}}
	in.Context, in.end = context.WithCancelCause(&in.link)
	c.inner.Store(in)
	switch {
	case in.Err() != nil:
		c.end()
	case !in.link.used:
		c.stop = c.follow(parent)
	}
	return c, c.cancel
}

// A cancellable is the list of who is to be told of its end, and a context of package context, which knows how to be one.
// Where the parent never ends, that one is made when somebody asks for what it has: the Done channel, a value, or, as
// package context does, what knows the cause. Few do, and it is most of what a context costs.
//
//	nil   made   as it is asked for, or cancelled with a cause
//	nil   over   cancelled without
//
// Invariant: nil means that it is not done; that the list has ended, that it is.
type cancellable struct {
	context.Context // the parent
	inner           atomicx.Pointer[inner]
	list            ending.List
	stop            func() bool // following the parent; nil: it does not
}

// An inner is the context of package context in one of ours.
type inner struct {
	context.Context
	end  context.CancelCauseFunc
	link link // zero: the parent never ends
}

// over is that of all that have been cancelled before they had one. The channel is the one that package context has
// for those that end before they are asked for it.
var over = func() *inner {
	in := newInner()
	in.end(nil)
	return in
}()

func newInner() *inner {
	in := new(inner)
	in.Context, in.end = context.WithCancelCause(context.Background())
	return in
}

// made returns the inner context, and makes it if need be.
func (c *cancellable) made() *inner {
	in := c.inner.Load()
	if in == nil {
		if in = newInner(); !c.inner.CompareAndSwap(nil, in) {
			in = c.inner.Load()
		}
	}
	return in
}

// Done implements context.Context.
func (c *cancellable) Done() <-chan struct{} { return c.made().Done() }

// Err implements context.Context.
func (c *cancellable) Err() error {
	if in := c.inner.Load(); in != nil {
		return in.Err()
	}
	return nil
}

func (c *cancellable) cancel(cause error) {
	if c.stop != nil {
		c.stop()
	}
	if cause == nil && c.inner.CompareAndSwap(nil, over) {
		c.list.End(context.Canceled)
		return
	}
	c.made().end(cause)
	c.end()
}

// end has all told who are listed, after the context is done, and why it is, so that not each of them has to find out.
//
// Cause is not only asked for its result. It waits for whoever is just cancelling the inner context, and that one cancels
// the inner contexts of our children first; or else those in our list might be told before their own context is done.
func (c *cancellable) end() {
	if !c.list.Over() {
		c.list.End(ending.Reason(c.Err(), context.Cause(c.made().Context)))
	}
}

// A call is a function that is to be called.
type call struct {
	ending.Node
	f func()
}

// Ended implements ending.Listener.
func (c *call) Ended() {
	f := c.f
	c.f = nil
	f()
}

func (c *call) stop() bool {
	if !c.Stop() {
		return false
	}
	c.f = nil
	return true
}

// AfterFunc has f called after c is done, see New.
func (c *cancellable) AfterFunc(f func()) (stop func() bool) {
	if f == nil {
		panic("cancel: nil function")
	}
	n := &call{f: f}
	if !c.list.Add(&n.Node, n) {
		n.Ended()
	}
	return n.stop
}

func init() {
	var ctx context.Context = (*cancellable)(nil)
	ending.SetContext(*(*unsafe.Pointer)(unsafe.Pointer(&ctx)), unsafe.Offsetof(cancellable{}.list))
}

// self is the key by which a context finds the innermost cancellable that it descends from.
type self struct{}

// Value implements context.Context. The inner context is asked first: the parent may pass on what knows the cause of an
// end that it hides.
func (c *cancellable) Value(key any) any {
	if key == (self{}) {
		return c
	}
	in := c.made()
	if v := in.Value(key); v != nil || in.link.c != nil {
		return v
	}
	return c.Context.Value(key)
}

// String is what fmt prints, which would look at the list otherwise.
func (c *cancellable) String() string { return "cancel.New" }

// follow has c end after its inner context has, which parent ends: parent's own list if it has one, as it has ended the inner
// context by then, see end; and otherwise the inner context, since a parent of package context may end its children in any
// order.
func (c *cancellable) follow(parent context.Context) (stop func() bool) {
	if p, ok := parent.Value(self{}).(*cancellable); ok && p.Done() == parent.Done() { // or else what is in between can end
		return p.AfterFunc(c.end)
	}
	return context.AfterFunc(c.made().Context, c.end)
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
		l.c.list.End(nil) // New may not have returned, and c may be without its inner context: those who are told find out why
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
