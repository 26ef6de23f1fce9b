package cancelctx

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/preempt"
)

// A Context is a context of package cancel: a List, and a context of package context for the Done
// channel, the cause and the contexts derived from it. Where the parent never ends, or is such a Context itself, the latter
// is made on demand, since few callers need it and it is most of the cost.
//
//	nil   made   on demand, or by a Cancel with a cause
//	nil   over   by a Cancel without
//
// Invariant: a Context whose inner is nil is not done; one whose List has ended is done.
type Context struct {
	context.Context // the parent
	inner           atomicx.Pointer[inner]
	List            List
	up              *upward // may be nil: it follows no parent
}

// An upward is how a Context follows its parent.
type upward struct {
	stop func() bool // stops following the parent; nil: does not follow, or by node
	node Node        // linked in the List of a parent without an inner context
}

// A Following is a Context with room for what follows its parent. The Context is its part, and is what waits are given.
type Following struct {
	Context
	upward upward
}

// Init makes the zero Following what New returns.
func (f *Following) Init(parent context.Context, on Watching) {
	f.up = &f.upward
	f.Context.Init(parent, on)
}

// An inner is the context of package context in a Context.
type inner struct {
	context.Context
	end  context.CancelCauseFunc
	link link // zero: the parent never ends
}

// over is the inner of every Context that was cancelled before it had one. Package context shares its channel
// between such contexts.
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

// New returns a Context that ends with parent, or by Cancel.
func New(parent context.Context, on Watching) *Context {
	f := new(Following)
	f.Init(parent, on)
	return &f.Context
}

// Init makes the zero Context, which may be a part of something, what New returns.
func (c *Context) Init(parent context.Context, on Watching) { c.InitAs(parent, parent, on) }

// InitAs is Init with a context that replaces the parent as the source of values and deadlines. It adds values to the parent.
func (c *Context) InitAs(seen, parent context.Context, on Watching) {
	c.Context = seen
	if preempt.Watched() {
		defer c.made() // Err announces the look then
	}
	p, ok := parent.(*Context)
	ok = ok && p.inner.Load() == nil
	if !ok && parent.Done() == nil {
		return
	}
	if c.up == nil {
		c.up = new(upward)
	}
	if ok {
		if f := (*follower)(c); !p.List.Add(&c.up.node, f) {
			f.Ended()
		}
		return
	}
	in := &inner{link: link{Context: parent, c: c, on: on}}
	in.Context, in.end = context.WithCancelCause(&in.link)
	c.inner.Store(in)
	switch {
	case in.Err() != nil:
		c.notify()
	case !in.link.used:
		c.up.stop = c.follow(parent, on)
	}
}

// A follower is a Context whose parent had no inner: the parent ends by Cancel only, and its List notifies.
type follower Context

// Ended implements Listener. The parent has an inner by now.
func (f *follower) Ended() {
	c := (*Context)(f)
	cause := context.Cause(c.Context)
	if cause == context.Canceled {
		cause = nil
	}
	c.Cancel(cause)
}

// Of returns the Context with which ctx ends, nil if there is none: ctx itself, or a Context that ctx only adds values to.
func Of(ctx context.Context) *Context {
	if c, ok := ctx.(*Context); ok {
		return c
	}
	if c, ok := ctx.Value(self{}).(*Context); ok && c.Done() == ctx.Done() {
		return c
	}
	return nil
}

// made returns the inner context.
func (c *Context) made() *inner {
	in := c.inner.Load()
	if in == nil {
		if in = newInner(); !c.inner.CompareAndSwap(nil, in) {
			in = c.inner.Load()
		}
	}
	return in
}

// Done implements context.Context.
func (c *Context) Done() <-chan struct{} {
	preempt.Glance(0)
	return c.made().Done()
}

// DoneIfMade is Done for a Context that can end before its List does. It is nil for all other Contexts: they end by Cancel alone.
func (c *Context) DoneIfMade() <-chan struct{} {
	if in := c.inner.Load(); in != nil {
		return in.Done()
	}
	return nil
}

// Err implements context.Context.
func (c *Context) Err() error {
	if in := c.inner.Load(); in != nil {
		if in != over {
			atomicx.LookAtContext()
			preempt.Glance(0)
		}
		return in.Err()
	}
	return nil
}

// Cancel ends c. The first call decides the cause; nil means context.Canceled.
func (c *Context) Cancel(cause error) {
	if up := c.up; up != nil {
		up.node.Stop()
		if up.stop != nil {
			defer c.end(cause) // runs even if a foreign parent panics in stop
			up.stop()
			return
		}
	}
	c.end(cause)
}

// end ends a Context that does not follow its parent any more.
func (c *Context) end(cause error) {
	if cause == nil && c.inner.CompareAndSwap(nil, over) {
		c.List.End(context.Canceled)
		return
	}
	defer c.notify() // runs even if a foreign parent panics: the inner context is done before it leaves the parent
	in := c.made()
	atomicx.EndContext()
	in.end(cause)
}

// notify ends the List of a Context that is done. The error is made once, here, and not by every waiter.
//
// Cause is called also because it waits: another goroutine may be cancelling the inner context just now, and cancels the
// inner contexts of our children first. Otherwise their Listeners could run before their own context is done.
func (c *Context) notify() {
	if !c.List.Over() {
		c.List.End(Reason(c.Err(), context.Cause(c.made().Context)))
	}
}

// A call is a function in a List.
type call struct {
	Node
	f func()
}

// Ended implements Listener.
func (c *call) Ended() {
	f := c.f
	c.f = nil
	f()
}

func (c *call) stop() bool {
	preempt.Glance(0)
	if !c.Stop() {
		return false
	}
	c.f = nil
	return true
}

// AfterFunc calls f after c is done, see cancel.New.
func (c *Context) AfterFunc(f func()) (stop func() bool) {
	if f == nil {
		panic("cancel: nil function")
	}
	n := &call{f: f}
	if !c.List.Add(&n.Node, n) {
		n.Ended()
	}
	return n.stop
}

// self is the key of the innermost Context that a context descends from.
type self struct{}

// A Passing key is one of this module for a value of a parent. The inner context has no such value, and is not made for it.
type Passing interface{ Passing() }

// Value implements context.Context. The inner context comes first, since a parent may hide its end, and would answer for
// the inner context when package context looks for the context with the cause.
func (c *Context) Value(key any) any {
	if key == (self{}) {
		return c
	}
	if _, ok := key.(Passing); ok {
		return c.Context.Value(key)
	}
	in := c.made()
	if v := in.Value(key); v != nil || in.link.c != nil {
		return v
	}
	return c.Context.Value(key)
}

// String keeps fmt from reading the List.
func (c *Context) String() string { return "cancel.New" }

// follow ends c after its inner context, which parent ends. If parent is a Context itself, its List notifies c, since it has
// ended the inner context by then, see notify. Otherwise the inner context does: a parent of package context may cancel
// its children in any order.
func (c *Context) follow(parent context.Context, on Watching) (stop func() bool) {
	if p := Of(parent); p != nil {
		return p.AfterFunc(c.notify)
	}
	return on.OnDone(c.made().Context, c.notify)
}

// A link is the parent as the inner context sees it. If the parent has an AfterFunc, package context calls the AfterFunc
// of the link, and the link calls the parent's, once for both: a parent may call back in any order, and the inner
// context has to be done first.
type link struct {
	context.Context
	c    *Context
	on   Watching
	used bool
}

// AfterFunc is called, if at all, before context.WithCancelCause returns.
func (l *link) AfterFunc(f func()) (stop func() bool) {
	l.used = true
	both := func() {
		f()
		l.c.List.End(nil) // New may not have returned, and the inner context not be stored: the Listeners look for the reason
	}
	return l.on.OnDone(l.Context, both)
}

// An AfterFuncer is a context that calls back by itself, without a goroutine for each callback.
type AfterFuncer interface {
	AfterFunc(f func()) (stop func() bool)
}

// AfterFunc calls f after ctx has ended: by its own AfterFunc if it has one, or by package context.
func AfterFunc(ctx context.Context, f func()) (stop func() bool) { return Watching(nil).OnDone(ctx, f) }

// A Watcher reports the end of a context that does not call back by itself, without a goroutine of package context.
type Watcher interface {
	AfterDone(ctx context.Context, f func()) (stop func() bool)
}

// A Watching returns the Watcher to use, nil if there is none. The nil Watching returns none.
type Watching func() Watcher

// OnDone calls f after ctx has ended: by its own AfterFunc if it has one, by the Watcher, or by package context.
func (on Watching) OnDone(ctx context.Context, f func()) (stop func() bool) {
	if a, ok := ctx.(AfterFuncer); ok {
		return a.AfterFunc(f)
	}
	if on != nil {
		if w := on(); w != nil {
			return w.AfterDone(ctx, f)
		}
	}
	return context.AfterFunc(ctx, f)
}
