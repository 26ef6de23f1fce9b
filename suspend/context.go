package suspend

import (
	"context"
	"fmt"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/internal/lazily"
	"github.com/braidgo/braid/suspend/sched"
)

// How a wait ends with its context
//
//  1. Until it is unparked, the task is parked in its scheduler, and its nodes are in the queues of the objects that it waits for.
//  2. The end of the context calls Ended, the method of the wait's registration. A context of package cancel, or a context that
//     only adds values to it, has a list of registrations, and the goroutine that ends the context calls Ended for each. Any other
//     context calls Ended by its AfterFunc method, on a goroutine of its choice. The contexts of package context have no such
//     method: for them, the scheduler's Watcher calls Ended as a callback or, without a Watcher, context.AfterFunc calls Ended on a
//     new goroutine. A goroutine without a task needs no registration, because it blocks in a select with the Done channel.
//  3. Ended cancels the word and calls Unpark. A Resume that finds the Done channel closed before Ended was called does the same,
//     and returns false, so that its caller offers the value to the next waiter.
//     Then the goroutine that has ended the context calls the heirs of the wait (see LeaveTo), which serve the waiters behind it.
//  4. The task runs again and removes its nodes: in Wait and Select under the guards of the objects, and after a plain Suspend in
//     the caller's own code. The nodes of a continuation are removed on its executor. A queue that reaches a cancelled node earlier
//     removes it.
//  5. The call returns the cancellation error, and the operation has had no effect.
//
// A lazy wait (see Lazily) has no registration, so step 2 does not happen: the task stays parked until a Resume performs step 3. A
// Kill by the scheduler cancels the word of any wait. The task then performs step 4 and exits. Inside a Shield, the Kill takes
// effect only when the Shield ends.

// arm opens the word for a wait with ctx. It returns false if ctx has already ended.
func (b *binding) arm(ctx context.Context) (s state, ok bool) {
	b.check()
	e := endOf(ctx)                // may call foreign code
	b.last = wait{status: unarmed} // this remains if ctx panics or has ended
	w := wait{done: e.done, status: open}
	if lasting(ctx) {
		w.ctx = ctx
	}
	fresh := false
	if e != (end{}) {
		if e.reached(ctx) {
			return 0, false
		}
		if w.status = openLazily; lazily.Allowed(ctx) {
			b.unregister() // a lazy wait has no registration
		} else {
			w.status, fresh = openToContext, b.register(ctx, e)
		}
	}
	s = b.word.load()
	if fresh || s.status() != w.status {
		s = b.word.open(w.status)
		// From here on the registration cancels this wait. If ctx ended before, its notification found nothing to cancel, so arm
		// checks ctx again.
		if e.reached(ctx) {
			return 0, false
		}
		if !b.word.load().sameWait(s) { // ctx.Err has suspended, although it must not
			return b.arm(ctx)
		}
	}
	b.last = w
	b.exitIfKilled()
	return s, true
}

// lasting reports whether ctx is known to keep its Done channel and to be comparable.
func lasting(ctx context.Context) bool { return cancelctx.Lasting(lazily.Plain(ctx)) }

// endOf returns the end of ctx. It may call methods of ctx.
func endOf(ctx context.Context) end {
	if c := cancelctx.Of(ctx); c != nil {
		return end{list: &c.List, done: c.DoneIfMade()}
	}
	return end{done: ctx.Done()}
}

// An end identifies the event that ends a context. It is the list of a context of package cancel, or else the Done channel. The
// context itself would not serve: it may not be comparable, and a context that only adds a value ends with its parent. The zero
// end means that the context never ends.
type end struct {
	list *cancelctx.List
	done <-chan struct{} // is nil if Cancel is certain to notify the list before it returns
}

// is reports whether e and f are the same end.
func (e end) is(f end) bool {
	if e.list != nil {
		return e.list == f.list
	}
	return f.list == nil && e.done == f.done
}

// reached reports whether ctx has ended. e must be the end of ctx.
func (e end) reached(ctx context.Context) bool {
	if e.list != nil {
		return ctx.Err() != nil
	}
	return e.done != nil && atomicx.Closed(e.done)
}

// cancellation returns the error of ctx, which has ended. If a method of ctx panics, the panic becomes the error, so that the
// caller can still remove its waiters and serve others.
func cancellation(ctx context.Context) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &contextPanic{v}
		}
	}()
	ctx = lazily.Plain(ctx)
	if c, ok := ctx.(*cancelctx.Context); ok {
		if err := c.List.Err(); err != nil {
			return err
		}
	}
	return cancelctx.Reason(ctx.Err(), context.Cause(ctx))
}

// A contextPanic is the cancellation error of a context whose methods panic.
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

// with returns the end with which r is registered, or the zero end if r is not registered.
func (r *registration) with() end {
	if r.foreign != nil {
		return end{done: r.foreign.done}
	}
	return end{list: r.node.List()}
}

// register registers b with ctx, unless b is already registered with the same end. e must be the end of ctx. register reports whether the
// registration is new.
func (b *waiter) register(ctx context.Context, e end) (fresh bool) {
	r := b.watched.Load()
	if r != nil && r.with().is(e) {
		return false
	}
	if r = b.unregister(); r == nil {
		r = &registration{b: b}
		b.watched.Store(r) // stored before word.open; pairs with the load in Ended
	}
	if e.list != nil {
		if !e.list.Add(&r.node, r) {
			r.ended()
		}
	} else {
		if l, ok := ctx.(*lazily.Context); ok { // a lazily.Context hides the AfterFunc method of the context that it wraps
			ctx = l.Context
		}
		r.foreign = &foreign{stop: func() bool { return false }} // this stop remains if ctx panics
		r.foreign.stop = watching.OnDone(ctx, r.ended)
		r.foreign.done = e.done // is set last, in case ctx panics
	}
	return true
}

// unregister withdraws the registration, if there is one. It does not panic. It returns the registration for reuse, if its Ended will
// certainly not be called. A foreign context gives no such certainty.
func (b *waiter) unregister() *registration {
	r := b.watched.Load()
	if r == nil {
		return nil
	}
	r.settle()
	if r.foreign == nil && (r.node.List() == nil || r.node.Stop()) {
		r.node = cancelctx.Node{} // the old node would retain the context
		return r
	}
	b.watched.Store(nil) // makes a late Ended of the old registration do nothing
	if r.foreign != nil {
		takeBack(r.foreign.stop)
	}
	return nil
}

// takeBack calls stop, which withdraws a callback that a wait, now over, has registered with its context. The owner of the context
// may have reused it for another request since. takeBack drops a panic of stop, which must not reach an unrelated call. The
// context then keeps a callback that does nothing.
func takeBack(stop func() bool) {
	defer func() { _ = recover() }()
	stop()
}

// Ended implements cancelctx.Listener. It cancels the wait with the context or, if the task is between two waits, the next wait,
// since the word stays open. Ended is called at most once, but that call may come late. If by then the task waits with another
// context, or with none, Ended changes nothing. If a Resume ends the wait first, the next Suspend checks ctx itself.
func (r *registration) Ended(last []cancelctx.Inheritor) []cancelctx.Inheritor {
	b := r.b
	s := b.word.load()
	if b.watched.Load() != r {
		return last
	}
	// The word was loaded before b.watched. If the registration has been replaced since, the word has changed too, and this call
	// of cancel fails. If the task has ended, cancelling the word does no harm, because the next wait opens it again.
	if s.status() == openToContext && b.word.cancel(s) {
		b.task.Unpark()
	}
	return r.appendHeirs(last)
}

// ended is like Ended, but also calls the heirs.
func (r *registration) ended() {
	for _, h := range r.Ended(nil) {
		h.Inherit()
	}
}

// reset is called at the end of a task. It withdraws the registration with the task's last context, and drops a Kill that has not
// taken effect.
func (b *binding) reset() {
	if b.last.status != unarmed || b.coins != 0 || b.random != nil || b.killed {
		b.last, b.random, b.coins, b.killed = wait{status: unarmed}, nil, 0, false // the next task may be on another scheduler
	}
	b.shrink()
	if b.watched.Load() != nil {
		b.unregister()
	}
}

// watching returns the Watcher of the calling task's scheduler, or nil if there is none.
var watching cancelctx.Watching = func() cancelctx.Watcher {
	if b := current(); b != nil && b.task != nil {
		if w, ok := As[sched.Watcher](spawnerOf(b.task)); ok {
			return w
		}
	}
	return nil
}
