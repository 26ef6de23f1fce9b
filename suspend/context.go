package suspend

import (
	"context"
	"fmt"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/cancelctx"
)

// arm opens the word to a wait with ctx, unless that is done by now.
func (b *binding) arm(ctx context.Context) (s state, ok bool) {
	b.check()
	e := endOf(ctx)                // may call foreign code
	b.last = wait{status: unarmed} // should the context panic, or be done
	w := wait{done: e.done, status: open}
	if lasting(ctx) {
		w.ctx = ctx
	}
	fresh := false
	if e != (end{}) {
		if e.over(ctx) {
			return 0, false
		}
		if w.status = openLazily; isLazy(ctx) {
			b.unwatch() // one context is kept
		} else {
			w.status, fresh = openToContext, b.watch(ctx, e)
		}
	}
	s = b.word.load()
	if fresh || s.status() != w.status {
		s = b.word.open(w.status)
		// From here on the registration cancels this wait. If it was notified before, it found nothing to cancel, and is
		// not notified again: so look once more.
		if e.over(ctx) {
			return 0, false
		}
		if !b.word.load().sameWait(s) { // Err has waited, which it is not to do
			return b.arm(ctx)
		}
	}
	b.last = w
	b.exitIfKilled()
	return s, true
}

// A lazyContext is the result of Lazily. AllowLazy returns its permit.
type lazyContext struct {
	context.Context
	permit lazyPermit
}

type lazyPermit struct{ context.Context }

func isLazy(ctx context.Context) bool {
	_, ok := ctx.(*lazyPermit)
	return ok
}

// lasting reports whether ctx keeps its Done channel, and can be compared.
func lasting(ctx context.Context) bool {
	if l, ok := ctx.(*lazyPermit); ok {
		ctx = l.Context
	}
	return cancelctx.Lasting(ctx)
}

// endOf returns the end of ctx, which it calls.
func endOf(ctx context.Context) end {
	if c := cancelctx.Of(ctx); c != nil {
		return end{list: &c.List, done: c.DoneIfMade()}
	}
	return end{done: ctx.Done()}
}

// An end identifies a context by its list, if it is of package cancel, or else by its Done channel. Contexts
// may be of a type that cannot be compared, and a context that only adds a value ends with its parent. The zero end never comes.
type end struct {
	list *cancelctx.List
	done <-chan struct{} // stays nil if the list is notified before its context counts as done
}

// is reports whether both are the same.
func (e end) is(f end) bool {
	if e.list != nil {
		return e.list == f.list
	}
	return f.list == nil && e.done == f.done
}

// over reports whether ctx, whose end is e, is done.
func (e end) over(ctx context.Context) bool {
	if e.list != nil {
		return ctx.Err() != nil
	}
	return e.done != nil && atomicx.Closed(e.done)
}

// cancellation returns the error of ctx, which is done. If ctx panics, the panic becomes the error, so that the caller can still take its
// waiters back and serve others.
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

// with returns the end that r is registered with, the zero end if with none.
func (r *registration) with() end {
	if r.foreign != nil {
		return end{done: r.foreign.done}
	}
	return end{list: r.node.List()}
}

// watch makes the registration with e, which is the end of ctx, the current one, and reports whether that is a change.
func (b *waiter) watch(ctx context.Context, e end) (fresh bool) {
	r := b.watched.Load()
	if r != nil && r.with().is(e) {
		return false
	}
	if r = b.unwatch(); r == nil {
		r = &registration{b: b}
		b.watched.Store(r) // before the word is opened: pairs with the load in Ended
	}
	if e.list != nil {
		if !e.list.Add(&r.node, r) {
			r.Ended()
		}
	} else {
		if l, ok := ctx.(*lazyContext); ok { // its own method set hides an AfterFunc
			ctx = l.Context
		}
		r.foreign = &foreign{stop: func() bool { return false }} // should ctx panic
		r.foreign.stop = watching.OnDone(ctx, r.Ended)
		r.foreign.done = e.done // last: should ctx panic, it is not taken for registered
	}
	return true
}

// unwatch takes the registration back from its context, if there is one, and does not panic. It returns a registration
// that may be used again, since it is certainly never called. A foreign context gives no such certainty.
func (b *waiter) unwatch() *registration {
	r := b.watched.Load()
	switch {
	case r == nil:
		return nil
	case r.foreign == nil && (r.node.List() == nil || r.node.Stop()):
		r.node = cancelctx.Node{} // a kept node would keep the context
		return r
	}
	b.watched.Store(nil) // a late call of the old registration must find another one
	if r.foreign != nil {
		takeBack(r.foreign.stop)
	}
	return nil
}

// takeBack takes a call back from a context whose wait is over. The owner of the context may have reused it for another request
// by now. A panic of its method must not fail the unrelated call that is here, its task or the process, so takeBack drops it.
// At worst the context keeps a function that finds nothing to do.
func takeBack(stop func() bool) {
	defer func() { _ = recover() }()
	stop()
}

// Ended cancels the suspension that the context was given for, or the next one of the task, since the word
// is open between two suspensions. It runs once, at any time. If it is late, the task waits with another context or with none, and
// Ended must change nothing. If it loses against a Resume, the next Suspend looks at ctx itself.
func (r *registration) Ended() {
	b := r.b
	s := b.word.load()
	if s.status() != openToContext || b.watched.Load() != r {
		return
	}
	// The word was loaded first: if the registration has been replaced since, so has the word. At the end of the
	// task the word stays, and the next wait replaces it.
	if b.word.cancel(s) {
		b.task.Unpark()
	}
}

// forget ends a task: it withdraws the registration with the task's last context.
func (b *binding) forget() {
	if b.last.status != unarmed || b.coins != 0 || b.random != nil || b.killed {
		b.last, b.random, b.coins, b.killed = wait{status: unarmed}, nil, 0, false // the next task may be on another scheduler
	}
	b.shrink()
	if b.watched.Load() != nil {
		b.unwatch()
	}
}

// watching finds the Watcher of the calling task's scheduler.
var watching cancelctx.Watching = func() cancelctx.Watcher {
	if b := current(); b != nil && b.task != nil {
		if w, ok := As[Watcher](spawnerOf(b.task)); ok {
			return w
		}
	}
	return nil
}
