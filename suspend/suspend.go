package suspend

import "context"

// Suspend suspends the calling task, and only it, until its Resumer is called or ctx is done.
//
// It calls block once, on the calling goroutine, unless ctx is done already: then it returns the error of
// the cancellation and block does not run. block either publishes the Resumer where another task will
// find it and returns false; or it finds that there is nothing to wait for and returns (v, true), which
// is then the result, whatever ctx has come to in the meantime. A failure that block finds is
// r.Resume(zero, err), false. Publish last: should block panic after it has published, a value that
// was delivered in between is lost with it. block must not suspend, and must not return true once its
// Resumer has been called; Suspend panics if it does.
//
// If ctx is done before the Resumer is called, Suspend returns an error that is both ctx.Err() and
// context.Cause(ctx) in the sense of errors.Is, and no Resume will return true: the operation has had no
// effect. What block published is then still where block put it; taking it away is the caller's part. The methods of ctx must
// not suspend.
//
// The task is the one bound to the calling goroutine, see Bind; where none is bound, the goroutine itself
// waits, like on a channel. Under Bind(nil, f) Suspend panics. Suspend does not allocate once the task has
// waited for a T with this context before; a goroutine without a task finds what one has used before, as a rule.
func Suspend[T any](ctx context.Context, block func(Resumer[T]) (T, bool)) (T, error) {
	b := current()
	if b == nil {
		return suspendGoroutine(ctx, block)
	}
	b.check()
	var zero T
	v, over := viewOf(ctx)
	if over {
		return zero, cancellation(ctx)
	}
	began, ok := b.armed(v)
	if !ok {
		if began, ok = b.arm(v); !ok {
			return zero, cancellation(ctx)
		}
	}
	s := slotOf[T](b)
	if x, ok := s.block(b, block, Resumer[T]{s, began, b.last.done}); ok {
		return x, nil
	}
	b.await(began, func() {})
	if b.word.isCancelled(began) {
		return zero, b.cancelled(ctx)
	}
	return s.take(began)
}
