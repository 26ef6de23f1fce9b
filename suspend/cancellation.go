package suspend

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/internal/prefetch"
)

// Err returns nil while ctx is not done, and from then on the error with which every cancellable operation
// of this module fails: it is both ctx.Err() and context.Cause(ctx) in the sense of errors.Is. It costs
// next to nothing where ctx cannot be cancelled.
//
// An operation that can succeed without suspending asks here first, so that a done context fails it all
// the same.
func Err(ctx context.Context) error {
	if _, over := ask(ctx); over {
		return cancellation(ctx)
	}
	return nil
}

// ask reports whether ctx is done, and returns its Done channel, unless ctx is lasting: then it need not be asked for.
func ask(ctx context.Context) (done <-chan struct{}, over bool) {
	if lasting(ctx) {
		return nil, ctx.Err() != nil
	}
	done = ctx.Done()
	return done, done != nil && closed(done)
}

// An iface is how the compiler represents a context: two words, the first of which is the type's.
type iface struct{ tab, data unsafe.Pointer }

func ifaceOf(ctx *context.Context) *iface { return (*iface)(unsafe.Pointer(ctx)) }

// same reports whether a and b are the same context; it may overlook it if that is not a pointer. Contexts may be of a
// type that cannot be compared.
func same(a, b context.Context) bool { return *ifaceOf(&a) == *ifaceOf(&b) }

// background reports whether ctx is context.Background(), which is never done.
func background(ctx context.Context) bool { return ifaceOf(&ctx).tab == backgroundTab }

// lasting reports whether ctx is of a type, of package context or of package cancel, of which it is known that its Done
// is always the same, and that Err tells when it is closed, in half the time. Others may be used again for something
// else, like the contexts of some HTTP frameworks, or stand for such a one.
func lasting(ctx context.Context) bool {
	tab := ifaceOf(&ctx).tab
	if tab == cancelTab || tab == backgroundTab || tab == deadlineTab {
		return true
	}
	_, ok := ctx.(*cancelctx.Context)
	return ok
}

var backgroundTab, cancelTab, deadlineTab = func() (background, cancelled, deadline unsafe.Pointer) {
	none := context.Background()
	some, cancel := context.WithCancel(none)
	cancel()
	late, cancel := context.WithTimeout(none, 0)
	cancel()
	return ifaceOf(&none).tab, ifaceOf(&some).tab, ifaceOf(&late).tab
}()

func closed(done <-chan struct{}) bool { return atomicx.Closed(done) }

// An end identifies a context by what tells of its end: the list of one of package cancel, or else its Done channel. Contexts
// may be of a type that cannot be compared, and one that only adds a value ends with its parent. The zero end never comes.
type end struct {
	list *cancelctx.List
	done <-chan struct{} // nil beside a list that is told before its context counts as done
}

// is reports whether both are the same.
func (e end) is(f end) bool {
	if e.list != nil {
		return e.list == f.list
	}
	return f.list == nil && e.done == f.done
}

func endOf(ctx context.Context) end {
	if c := cancelctx.Of(ctx); c != nil {
		return end{list: &c.List, done: c.DoneIfMade()}
	}
	return end{done: ctx.Done()}
}

// over reports whether e, which is the end of ctx, has come.
func (e end) over(ctx context.Context) bool {
	if e.list != nil {
		return ctx.Err() != nil
	}
	return e.done != nil && closed(e.done)
}

// cancellation returns the error of ctx, which is done. A context that panics when it is asked is one that was cancelled all
// the same. The error says so: the caller has waiters to take back, and others to serve, and must come to it.
func cancellation(ctx context.Context) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &contextPanic{v}
		}
	}()
	if l, ok := ctx.(*lazyPermit); ok {
		ctx = l.Context
	}
	if c, ok := ctx.(*cancelctx.Context); ok {
		if err := c.List.Err(); err != nil {
			return err
		}
	}
	return cancelctx.Reason(ctx.Err(), context.Cause(ctx))
}

// A registration is what a bound task has left with a context, so that its end cancels the suspension
// of the task. A task keeps the one of the context that it waited with last, of those that can be cancelled so.
type registration struct {
	b       *party
	task    unsafe.Pointer // of which is only fetched what it points to
	node    cancelctx.Node // in the list of one of package cancel
	foreign *foreign       // or nil; the task's own
}

// A foreign context has no list.
type foreign struct {
	done <-chan struct{}
	stop func() bool
}

// with returns the end that r is registered with, the zero end if with none.
func (r *registration) with() end {
	if r.foreign != nil {
		return end{done: r.foreign.done}
	}
	return end{list: r.node.List()}
}

// watch makes the registration with e, which is the end of ctx, the current one, and reports whether that is a change.
func (b *party) watch(ctx context.Context, e end) (fresh bool) {
	r := b.watched.Load()
	if r != nil && r.with().is(e) {
		return false
	}
	if r = b.unwatch(); r == nil {
		r = &registration{b: b, task: (*iface)(unsafe.Pointer(&b.task)).data}
		b.watched.Store(r) // before the word is opened: pairs with the load in Ended
	}
	if e.list != nil {
		if !e.list.Add(&r.node, r) {
			r.Ended()
		}
	} else {
		r.foreign = &foreign{stop: func() bool { return false }} // should ctx panic
		r.foreign.stop = cancelctx.OnDone(ctx, r.Ended)
		r.foreign.done = e.done // last: should ctx panic, it is not taken for registered
	}
	return true
}

// unwatch takes the registration back from its context, if there is one. It returns the registration if that may be used
// again, since it is sure never to be called. Of a foreign context nobody can be sure.
func (b *party) unwatch() *registration {
	r := b.watched.Load()
	switch {
	case r == nil:
		return nil
	case r.foreign == nil && (r.node.List() == nil || r.node.Stop()):
		r.node = cancelctx.Node{} // which has kept the context
		return r
	}
	b.watched.Store(nil) // so that it finds out when it is called
	if r.foreign != nil {
		r.foreign.stop()
	}
	return nil
}

// Ended cancels the suspension that the context was given for, or the next one of the task: the word is open
// between two of them as well. It runs once, at any time. It may be late, the task then waiting with another
// context or with none; or it may lose against a Resume, and then the next Suspend looks at ctx itself.
func (r *registration) Ended() {
	prefetch.Line(r.task)
	b := r.b
	word := b.word.Load()
	if word&statusMask != openToContext || b.watched.Load() != r {
		return
	}
	// The word was loaded first: if the registration has been replaced since, so has the word; or it is as the end of
	// the task has left it, and the next wait replaces it.
	if b.word.CompareAndSwap(word, with(word, cancelled)) {
		b.task.Unpark()
	}
}

// A contextPanic is the error of a context whose methods panic.
type contextPanic struct{ value any }

func (p *contextPanic) Error() string {
	return fmt.Sprintf("%v; the context panicked: %v", context.Canceled, p.value)
}

func (p *contextPanic) Unwrap() []error {
	if err, ok := p.value.(error); ok {
		return []error{context.Canceled, err}
	}
	return []error{context.Canceled}
}
