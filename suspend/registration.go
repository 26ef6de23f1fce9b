package suspend

import (
	"context"

	"github.com/braidgo/braid/internal/cancelctx"
)

// A registration of a bound task with a context cancels the suspension of the task when the context ends. A task keeps the one of its
// last context that can be cancelled so.
type registration struct {
	b       *waiter
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
		if l, ok := ctx.(*lazyContext); ok { // which hides an AfterFunc
			ctx = l.Context
		}
		r.foreign = &foreign{stop: func() bool { return false }} // should ctx panic
		r.foreign.stop = watching.OnDone(ctx, r.Ended)
		r.foreign.done = e.done // last: should ctx panic, it is not taken for registered
	}
	return true
}

// unwatch takes the registration back from its context, if there is one, and does not panic. It returns a registration that may be used again, since it is
// certainly never called. A foreign context gives no such certainty.
func (b *waiter) unwatch() *registration {
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
		takeBack(r.foreign.stop)
	}
	return nil
}

// takeBack takes a call back from a context whose wait is over. The owner of the context may have taken that back as well, and use it for
// another request. A method that panics then is no failure of the call that happens to be here, of its task or of its process. So
// the panic is dropped. At worst the context keeps a function that finds nothing to do.
func takeBack(stop func() bool) {
	defer func() { _ = recover() }()
	stop()
}

// Ended cancels the suspension that the context was given for, or the next one of the task: the word is open
// between two of them as well. It runs once, at any time. It may be late, the task then waiting with another
// context or with none; or it may lose against a Resume, and then the next Suspend looks at ctx itself.
func (r *registration) Ended() {
	b := r.b
	s := b.word.load()
	if s.status() != openToContext || b.watched.Load() != r {
		return
	}
	// The word was loaded first: if the registration has been replaced since, so has the word; or it is as the end of
	// the task has left it, and the next wait replaces it.
	if b.word.cancel(s) {
		b.task.Unpark()
	}
}
