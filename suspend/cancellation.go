package suspend

import (
	"context"
	"unsafe"

	"github.com/braidgo/braid/internal/ending"
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
	return tab == cancelTab || tab == backgroundTab || tab == deadlineTab || ending.IsContext(tab)
}

var backgroundTab, cancelTab, deadlineTab = func() (background, cancelled, deadline unsafe.Pointer) {
	none := context.Background()
	some, cancel := context.WithCancel(none)
	cancel()
	late, cancel := context.WithTimeout(none, 0)
	cancel()
	return ifaceOf(&none).tab, ifaceOf(&some).tab, ifaceOf(&late).tab
}()

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// An end is that of a context, by which it is known: the list of one of package cancel, or else the Done channel, since a
// context may be of a type that cannot be compared, and since one that only adds a value has its parent's. The zero end
// never comes.
type end struct {
	list *ending.List
	done <-chan struct{}
}

func endOf(ctx context.Context) end {
	if l := listOf(ctx); l != nil {
		return end{list: l}
	}
	return end{done: ctx.Done()}
}

// listOf returns the list of ctx, nil if it is not of package cancel. Who is in it is told without even a function, and no
// channel is made for that.
func listOf(ctx context.Context) *ending.List {
	i := ifaceOf(&ctx)
	return ending.Of(i.tab, i.data)
}

// over reports whether e, which is the end of ctx, has come.
func (e end) over(ctx context.Context) bool {
	if e.list != nil {
		return ctx.Err() != nil
	}
	return e.done != nil && closed(e.done)
}

// cancellation is the error of ctx, which is done.
func cancellation(ctx context.Context) error {
	if l, ok := ctx.(*lazyPermit); ok {
		ctx = l.Context
	}
	if l := listOf(ctx); l != nil {
		if err := l.Err(); err != nil {
			return err
		}
	}
	return ending.Reason(ctx.Err(), context.Cause(ctx))
}

// A registration is what a bound task has left with a context, so that its end cancels the suspension
// of the task. A task keeps the one of the context that it waited with last, of those that can be cancelled so.
type registration struct {
	b       *party
	task    unsafe.Pointer // of which is only fetched what it points to
	node    ending.Node    // in the list of one of package cancel
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

// An afterFuncer is a context that calls back at once, without a goroutine for each callback.
type afterFuncer interface {
	AfterFunc(func()) (stop func() bool)
}

// spent returns the current registration if it has cancelled the word. It has nothing left to do then but to Unpark.
func (b *binding) spent() *registration {
	if b.last.status == openToContext && b.word.Load()&statusMask == cancelled {
		return b.watched.Load()
	}
	return nil
}

// watch makes the registration with e, which is the end of ctx, the current one, and reports whether that is a change. spent is
// about the one before.
func (b *party) watch(ctx context.Context, e end, spent *registration) (fresh bool) {
	r := b.watched.Load()
	if r != nil && r.with() == e {
		return false
	}
	if r = b.unwatch(spent); r == nil {
		r = &registration{b: b, task: (*iface)(unsafe.Pointer(&b.task)).data}
		b.watched.Store(r) // before the word is opened: pairs with the load in Ended
	}
	if e.list != nil {
		if !e.list.Add(&r.node, r) {
			r.Ended()
		}
	} else {
		r.foreign = &foreign{stop: func() bool { return false }} // should ctx panic
		r.foreign.stop = onDone(ctx, r.Ended)
		r.foreign.done = e.done // last: should ctx panic, it is not taken for registered
	}
	return true
}

// unwatch takes the registration back from its context, if there is one, and returns it if it may be used again: if it is
// sure never to be called, or never to look at it again. Of a foreign context nobody can be.
func (b *party) unwatch(spent *registration) *registration {
	r := b.watched.Load()
	switch {
	case r == nil:
		return nil
	case r.foreign == nil && (r == spent || r.with() == end{} || r.node.Stop()):
		r.node = ending.Node{} // which has kept the context
		return r
	}
	b.watched.Store(nil) // so that it finds out when it is called
	if r.foreign != nil {
		r.foreign.stop()
	}
	return nil
}

// onDone has f called once ctx is done, by ctx itself if it offers that.
func onDone(ctx context.Context, f func()) (stop func() bool) {
	if a, ok := ctx.(afterFuncer); ok {
		return a.AfterFunc(f)
	}
	return context.AfterFunc(ctx, f)
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
