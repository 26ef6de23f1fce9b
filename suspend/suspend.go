package suspend

import (
	"context"

	"github.com/braidgo/braid/internal/ledger"
	"github.com/braidgo/braid/internal/preempt"
)

// Err returns nil until ctx has ended. Then it returns the error with which all cancellable operations of this module fail. The
// error matches both ctx.Err() and context.Cause(ctx) under errors.Is. Before ctx has ended, Err calls only ctx.Err, which is
// cheap.
//
// An operation that can succeed without suspending must call Err first, so that it fails if ctx has already ended.
func Err(ctx context.Context) error {
	if ctx.Err() == nil {
		if preempt.On() {
			looked(ctx)
		}
		return nil
	}
	return cancellation(ctx)
}

// Suspend suspends the calling task until its Resumer is called or ctx ends. Other tasks continue to run.
//
// Suspend calls block once, on the calling goroutine. If ctx has already ended, Suspend returns the cancellation error and does not
// call block. To wait, block publishes its Resumer where another task will find it, and returns false. If there is no need to wait,
// block returns (v, true), and Suspend returns v, even if ctx has ended by then. To fail, block calls r.Resume(zero, err) and
// returns false. block should publish the Resumer last: if block panics after that, a value that was already delivered is lost.
// block must not suspend, and must not return true after its Resumer was called; Suspend panics if it does.
//
// If ctx ends before the Resumer is called, Suspend returns an error that matches both ctx.Err() and context.Cause(ctx) under
// errors.Is. Every Resume then returns false, and the operation has no effect. The Resumer is still where block published it, and
// the caller must remove it. The methods of ctx must not suspend. A task keeps its registration with ctx until it waits with
// another context, or ends. If ctx panics while the registration is withdrawn, the panic is dropped.
//
// Suspend parks the Task that is bound to the calling goroutine, see Bind. Without a Task, the goroutine itself blocks, as on a
// channel. Under Bind(nil, f) Suspend panics. Suspend does not allocate if the task has waited before with this context and for a
// T. A goroutine without a task usually reuses the record of an earlier wait.
func Suspend[T any](ctx context.Context, block func(Resumer[T]) (T, bool)) (T, error) {
	Preemptible()
	b := current()
	if b != nil {
		b.check()
	}
	var zero T
	if ctx.Err() != nil || preempt.On() && looked(ctx) {
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
	for b.word.pending(began) { // a copy of switchAway, without its frame
		next, yield := b.switcher.Leave()
		for next != nil {
			next()
			next, yield = b.switcher.Back()
		}
		if yield != nil {
			yield(struct{}{})
		}
	}
	if b.word.isCancelled(began) {
		return zero, b.cancelled(ctx)
	}
	return s.takeValue(began)
}
