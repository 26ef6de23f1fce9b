package suspend

import (
	"context"

	"github.com/braidgo/braid/internal/lazily"
	"github.com/braidgo/braid/internal/ledger"
	"github.com/braidgo/braid/internal/preempt"
)

// Wait performs the operation of s for the calling task. If Try performs the operation at once, Wait returns the result. Otherwise
// Wait suspends the caller until it is resumed or ctx ends. If ctx ends first, or has already ended, Wait returns the cancellation
// error, the operation has no effect, and nothing stays queued.
//
// Wait is a direct form of Do, without a Select. A blocking operation of a primitive needs nothing else: Wait locks the guard,
// tries, queues, unlocks, suspends, and removes the waiter if the wait has failed.
func Wait[T any, S Source[T]](ctx context.Context, s S) (T, error) {
	return performSource[T](ctx, s, 0)
}

// WaitLazily is like Wait, but if ctx is a result of Lazily, the wait is cancelled lazily. Use WaitLazily for an operation whose
// waiters delay nobody and are certain to be resumed eventually.
func WaitLazily[T any, S Source[T]](ctx context.Context, s S) (T, error) {
	return performSource[T](ctx, s, allowsLazy)
}

// Properties of a call of performSource.
const (
	allowsLazy = 1 << iota
	reported   // reportedSource has called performSource
)

// performSource implements Wait and WaitLazily, which are inlined, because each frame costs 10 ns after a switch.
func performSource[T any, S Source[T]](ctx context.Context, s S, how uint8) (T, error) {
	g := s.Guard()
	if g == nil {
		return Do(ctx, OpOf[T](s))
	}
	if how&allowsLazy != 0 {
		ctx = lazily.Allow(ctx)
	}
	if how&reported == 0 {
		if preempt.On() {
			return reportedSource[T](ctx, s, how)
		}
		if ctx.Err() != nil {
			var zero T
			return zero, cancellation(ctx)
		}
	}
	var b *binding
	var began state
	armed := false
again:
	g.mu.Lock()
	if x, ok, err := s.Try(); ok {
		g.Unlock()
		return x, err
	}
	if !armed {
		b = current()
		if began, armed = b.armed(ctx); !armed { // the last wait had another context
			g.Unlock()
			if b == nil {
				return waitGoroutine[T](ctx, g, s)
			}
			if began, armed = b.arm(ctx); !armed {
				var zero T
				return zero, cancellation(ctx)
			}
			goto again
		}
	}
	// The word is open and the registration in place, so no foreign code is called under the guard.
	place, ok := b.slot.(*slot[T]) // repeats slotOf, which the compiler does not inline
	if !ok {
		place = otherSlotOf[T](b)
	}
	r := Resumer[T]{place, began, b.last.done}
	place.abandonNode()
	s.Enqueue(r)
	g.Unlock()
	if ledger.On() {
		recordWait(b, s, g, began, r.done != nil)
	}
	if b.switcher == nil {
		parkIn(b, s, r)
	}
	for b.word.pending(began) { // a copy of leave, which saves one return
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
		remove(s, r)
		var zero T
		return zero, b.cancelled(ctx)
	}
	return place.takeValue(began)
}

// reportedSource is like performSource while preempt.On returns true. It lets a test scheduler switch tasks before the look at ctx, and
// between the look and the operation. If the Source is a ledger.Holder, it records the holder.
//
//go:noinline
func reportedSource[T any, S Source[T]](ctx context.Context, s S, how uint8) (v T, err error) {
	Preemptible()
	if ctx.Err() != nil || looked(ctx) {
		return v, cancellation(ctx)
	}
	v, err = performSource[T](ctx, s, how|reported)
	if h, ok := any(s).(ledger.Holder); ok && err == nil {
		h.Took(0)
	}
	return v, err
}

// parkIn is like park, but for a Wait. It must not be inlined, because its closure would enlarge the frame of Wait by 56 bytes.
// With the larger frame, a task that begins with a receive from its mailbox would not fit into its first stack of 2 KB.
//
//go:noinline
func parkIn[T any, S Source[T]](b *binding, s S, r Resumer[T]) {
	b.park(r.wait, func() { remove(s, r) })
}
