package suspend

import (
	"context"
	"fmt"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/cancelctx"
)

// Err returns nil while ctx is not done, and from then on the error with which every cancellable operation
// of this module fails: it is both ctx.Err() and context.Cause(ctx) in the sense of errors.Is. It asks ctx
// by its Err alone, which costs next to nothing.
//
// An operation that can succeed without suspending asks here first, so that a done context fails it all
// the same.
func Err(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return cancellation(ctx)
}

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
