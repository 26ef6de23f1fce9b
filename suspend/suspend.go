package suspend

import (
	"context"

	"github.com/braidgo/braid/internal/ledger"
)

// Err returns nil while ctx is not done, and from then on the error with which every cancellable operation
// of this module fails: it is both ctx.Err() and context.Cause(ctx) in the sense of errors.Is. While ctx
// is not done, it calls only ctx.Err, which costs next to nothing.
//
// An operation that can succeed without suspending must call Err first, so that a done context fails it
// too.
func Err(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return cancellation(ctx)
}

// Suspend suspends the calling task, and only it, until its Resumer is called or ctx is done.
//
// It calls block once, on the calling goroutine. If ctx is done already, it returns the cancellation error and block does not run. block
// either publishes the Resumer where another task will find it and returns false. Or it finds that it need not wait and returns (v, true),
// which is the result, even if ctx is done by then. A failure that block finds is r.Resume(zero, err), false. Publish last: if block panics
// after it has published, a value that was delivered in between is lost. block must not suspend, and must not return true once its
// Resumer has been called; Suspend panics if it does.
//
// If ctx is done before the Resumer is called, Suspend returns an error that is both ctx.Err() and context.Cause(ctx) in the sense of
// errors.Is. No Resume returns true then: the operation has had no effect. The published Resumer is still where block put it, and the
// caller takes it away. The methods of ctx must not suspend. A task keeps its registration with ctx until it waits with another context, or
// ends. If the methods of ctx panic by then, nothing comes of it.
//
// The task is bound to the calling goroutine, see Bind. Without one the goroutine itself waits, as on a channel. Under Bind(nil, f)
// Suspend panics. Suspend does not allocate once the task has waited for a T with this context before. A goroutine without a task usually
// finds the record of an earlier one.
func Suspend[T any](ctx context.Context, block func(Resumer[T]) (T, bool)) (T, error) {
	Preemptible()
	b := current()
	if b != nil {
		b.check()
	}
	var zero T
	if ctx.Err() != nil {
		return zero, cancellation(ctx)
	}
	if b == nil {
		return suspendGoroutine(ctx, block)
	}
	began, ok := b.armed(ctx)
	if !ok {
		if began, ok = b.arm(ctx); !ok {
			return zero, cancellation(ctx)
		}
	}
	s := slotOf[T](b)
	if x, ok := s.block(b, block, Resumer[T]{s, began, b.last.done}); ok {
		return x, nil
	}
	if ledger.On() {
		recordSuspend(b, Resumer[T]{s, began, b.last.done})
	}
	if b.switcher == nil {
		b.park(began, func() {})
	}
	for b.word.pending(began) {
		leave(b, false)
	}
	if b.word.isCancelled(began) {
		return zero, b.cancelled(ctx)
	}
	return s.take(began)
}
