package cancelctx

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/preempt"
)

// A Context is a context of package cancel. It has three parts:
//
//	List   notifies the waiters and the children
//	inner  a context of package context, made late: the Done channel, the cause, and the parent of derived contexts
//	up     the registration with the parent
//
// The inner context is made on demand, if the parent never ends or is a Context without an inner context. Making it is most of the cost of a
// Context, and few callers need it, since a wait of this module uses the List. With any other parent, New makes it, because it has to end
// with the parent.
//
//	nil   made   by New, by a method that needs the inner context, or by a Cancel with a cause
//	nil   over   by a Cancel without a cause: over is an ended inner context, which all such Contexts share
//
// Invariant: a Context whose field inner is nil is not done. A Context whose List has ended is done.
type Context struct {
	// The parent, or the context with the parent's values that InitAs was given. Set by Init, and never changes.
	context.Context

	// The context of package context behind the methods, made when one of them is called, or over. Set once, with a CAS, except that Init
	// stores it before others have the Context.
	inner atomicx.Pointer[inner]

	// The waiters and children that the end of the Context notifies. A List has its own lock.
	List List

	// The registration by which the Context learns of the end of its parent. A Following has it from the start, otherwise Init makes it. If
	// the parent never ends, it is nil or stays empty. Set before Init returns, and never changes.
	up *upward
}

// An upward registers a Context with its parent, so that the Context ends when the parent ends.
type upward struct {
	stop func() bool // stops following the parent; set by Init; nil if the Context uses node, or the inner context follows the parent itself
	node Node        // an entry in the List of a parent without an inner context; guarded by that List
}

// An inner is the inner context of a Context.
type inner struct {
	context.Context
	end  context.CancelCauseFunc
	link link // the parent of this context, made for it; zero if it has none
}

// New returns a Context that ends when parent ends or when Cancel is called.
func New(parent context.Context, on Watching) *Context {
	f := new(Following)
	f.Init(parent, on)
	return &f.Context
}

// Init initialises the zero Context c, as New does. The Context may be embedded in a larger struct.
func (c *Context) Init(parent context.Context, on Watching) { c.InitAs(parent, parent, on) }

// InitAs is like Init, but c takes its values and its deadline from the context seen, which must be derived from parent and must only add
// values.
func (c *Context) InitAs(seen, parent context.Context, on Watching) {
	c.Context = seen
	if preempt.Watched() {
		defer c.made() // Err calls preempt.Glance only if the inner context is made
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
			inherit(f.Ended(nil))
		}
		return
	}
	in := &inner{link: link{Context: parent, c: c, on: on}}
	in.Context, in.end = context.WithCancelCause(&in.link)
	c.inner.Store(in)
	switch {
	case in.Err() != nil:
		c.notifyAll()
	case !in.link.used:
		c.up.stop = c.follow(parent, on)
	}
}

// A follower is a Context whose parent had no inner context at the call of Init. Such a parent ends only by Cancel, and its List notifies
// the follower.
type follower Context

// Ended implements Listener. The parent has an inner context when Ended is called.
func (f *follower) Ended(last []Inheritor) []Inheritor {
	c := (*Context)(f)
	cause := context.Cause(c.Context)
	if cause == context.Canceled {
		cause = nil
	}
	return c.cancelContext(cause, last)
}

// Of returns the Context with which ctx ends, or nil if there is none. This is ctx itself, or a Context to which ctx only adds values. A context
// that wraps a Context may have a Done channel of its own, and end earlier, so Of compares the channels.
func Of(ctx context.Context) *Context {
	if c, ok := ctx.(*Context); ok {
		return c
	}
	if c, ok := ctx.Value(self{}).(*Context); ok && c.Done() == ctx.Done() {
		return c
	}
	return nil
}

// made returns the inner context, and makes it if there is none.
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

// DoneIfMade returns the Done channel if the inner context is made, because such a Context may be done before its List has ended. It
// returns nil for all other Contexts, which end only by Cancel.
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

// Cancel ends c. The first call sets the cause. A nil cause means context.Canceled.
func (c *Context) Cancel(cause error) { inherit(c.cancelContext(cause, nil)) }

// cancelContext is like Cancel, but does not call the Inheritors. It appends them to last.
func (c *Context) cancelContext(cause error, last []Inheritor) []Inheritor {
	if up := c.up; up != nil {
		up.node.Stop()
		if up.stop != nil {
			stopped := false
			defer func() {
				if !stopped { // a foreign parent has panicked in stop
					inherit(c.end(cause, nil))
				}
			}()
			up.stop()
			stopped = true
		}
	}
	return c.end(cause, last)
}

// end ends c, which must no longer follow its parent.
func (c *Context) end(cause error, last []Inheritor) []Inheritor {
	if cause == nil && c.inner.CompareAndSwap(nil, over) {
		return c.List.end(context.Canceled, last)
	}
	ended := false
	defer func() {
		if !ended { // a foreign parent has panicked, and the inner context is done, because it ends before it leaves the parent
			inherit(c.notify(nil))
		}
	}()
	in := c.made()
	atomicx.EndContext()
	in.end(cause)
	ended = true
	return c.notify(last)
}

// notify ends the List of c, which is done, and appends the Inheritors to last. It makes the error once, so that the waiters share it.
//
// The call of context.Cause also waits for a goroutine that is cancelling the inner context, and with it the inner contexts of c's
// children. Otherwise a Listener of a child could run before the child is done.
func (c *Context) notify(last []Inheritor) []Inheritor {
	if c.List.Over() {
		return last
	}
	return c.List.end(Reason(c.Err(), context.Cause(c.made().Context)), last)
}

// notifyAll is like notify, but also calls the Inheritors.
func (c *Context) notifyAll() { inherit(c.notify(nil)) }

// A notifier is a Listener that ends the List of a Context, which is done.
type notifier struct {
	Node
	c *Context
}

// Ended implements Listener.
func (n *notifier) Ended(last []Inheritor) []Inheritor { return n.c.notify(last) }

// A call is a function that is registered in a List.
type call struct {
	Node
	f func()
}

// Ended implements Listener.
func (c *call) Ended(last []Inheritor) []Inheritor {
	f := c.f
	c.f = nil
	f()
	return last
}

func (c *call) stop() bool {
	preempt.Glance(0)
	if !c.Stop() {
		return false
	}
	c.f = nil
	return true
}

// AfterFunc calls f after c is done. See cancel.AfterFunc.
func (c *Context) AfterFunc(f func()) (stop func() bool) {
	if f == nil {
		panic("cancel: nil function")
	}
	n := &call{f: f}
	if !c.List.Add(&n.Node, n) {
		n.Ended(nil)
	}
	return n.stop
}

// self is the key under which Value returns the innermost Context from which a context is derived.
type self struct{}

// Passing is implemented by keys of this module. Context.Value passes such a key directly to the parent, so that it need not make the inner
// context.
type Passing interface{ Passing() }

// Value implements context.Context. Value searches the inner context before the parent, because package context finds the context with the
// cause through Value. A parent that hides its own end would return the wrong context.
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

// String prevents fmt from reading the List.
func (c *Context) String() string { return "cancel.New" }

// follow makes c's List end after the inner context, which ends with parent. If parent is a Context, its List notifies c, because the inner
// context is done by then (see notify). Otherwise the inner context notifies c, because a parent of package context may cancel its children
// in any order.
func (c *Context) follow(parent context.Context, on Watching) (stop func() bool) {
	if p := Of(parent); p != nil {
		n := &notifier{c: c}
		if !p.List.Add(&n.Node, n) {
			inherit(n.Ended(nil))
		}
		return n.Stop
	}
	return on.OnDone(c.made().Context, c.notifyAll)
}

// over is the inner context of every Context that was cancelled, without a cause, before its inner context was made. All these Contexts
// share its Done channel.
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

// A Following is a Context together with its upward, so that both take one allocation. Operations are passed a pointer to the embedded
// Context.
type Following struct {
	Context
	upward upward
}

// Init initialises the zero Following f, as New does.
func (f *Following) Init(parent context.Context, on Watching) {
	f.up = &f.upward
	f.Context.Init(parent, on)
}

// A link is the parent of the inner context, and wraps the parent of c. If package context does not recognise the parent, it calls the
// link's AfterFunc, which registers one function with the parent. This function ends the inner context first, and then the List. With two
// functions, the parent might call them in the wrong order.
type link struct {
	context.Context
	c    *Context
	on   Watching
	used bool
}

// AfterFunc implements AfterFuncer. Package context calls it before context.WithCancelCause returns, or never.
func (l *link) AfterFunc(f func()) (stop func() bool) {
	l.used = true
	both := func() {
		f()
		l.c.List.End(nil) // the reason is not known, because New may not have stored the inner context yet
	}
	return l.on.OnDone(l.Context, both)
}

// An AfterFuncer is a context that calls registered functions when it ends, without a goroutine for each function.
type AfterFuncer interface {
	AfterFunc(f func()) (stop func() bool)
}

// AfterFunc calls f after ctx has ended. It uses the AfterFunc method of ctx, or context.AfterFunc if there is no such method.
func AfterFunc(ctx context.Context, f func()) (stop func() bool) { return Watching(nil).OnDone(ctx, f) }

// A Watcher calls functions after the end of contexts that have no AfterFunc method. Unlike context.AfterFunc, it starts no goroutine for
// each function.
type Watcher interface {
	AfterDone(ctx context.Context, f func()) (stop func() bool)
}

// A Watching returns the Watcher to use, or nil if there is none. A nil Watching means that there is no Watcher.
type Watching func() Watcher

// OnDone calls f after ctx has ended. It uses the AfterFunc method of ctx, or the Watcher if there is no such method, or context.AfterFunc
// if there is no Watcher either.
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
