package suspend

import (
	"context"

	"github.com/braidgo/braid/internal/ledger"
)

// Wait performs what s describes, for the calling task: it returns what Try returns, if that need not wait; otherwise it
// suspends the caller until it is resumed, or until ctx is done. Then, or if ctx is done already, it returns the error of
// the cancellation, the operation has had no effect, and nothing is left of it. With allowLazy, ctx may be lazy, see AllowLazy. It is a parameter, since a call of AllowLazy keeps the caller from being inlined, and each frame
// costs 10 ns after a switch.
//
// It is the direct way to what Do does by way of Select, and all that a blocking operation of a primitive consists of: lock
// the guard, try, queue, unlock, suspend, and remove what is left if that failed.
func Wait[T any, S Source[T]](ctx context.Context, s S, allowLazy bool) (T, error) {
	g := s.Guard()
	if g == nil {
		return Do(ctx, OpOf[T](s))
	}
	if allowLazy {
		ctx = AllowLazy(ctx)
	}
	Preemptible()
	if ctx.Err() != nil {
		var zero T
		return zero, cancellation(ctx)
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
		if began, armed = b.armed(ctx); !armed { // the task has not waited with ctx just before
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
	// The word is open and the registration there, so nothing foreign need be called under the guard.
	place, ok := b.slot.(*slot[T]) // repeats slotOf, which the compiler does not inline
	if !ok {
		place = otherSlotOf[T](b)
	}
	r := Resumer[T]{place, began, b.last.done}
	place.abandonNode()
	s.Enqueue(r)
	g.Unlock()
	if ledger.On() {
		recordWait[T](b, s, r)
	}
	if b.switcher == nil {
		parkIn(b, s, r)
	}
	for b.word.pending(began) { // leave, with a return less
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
		remove(g, s, r)
		var zero T
		return zero, b.cancelled(ctx)
	}
	return place.take(began)
}

// parkIn is park for a Wait. It is not inlined, as its closure would need 56 bytes of the frame of Wait, below which the slot is allocated:
// with them, a task that begins with a receive from its mailbox does not fit into its first stack of 2 KB.
//
//go:noinline
func parkIn[T any, S Source[T]](b *binding, s S, r Resumer[T]) {
	b.park(r.wait, func() { remove(s.Guard(), s, r) })
}
