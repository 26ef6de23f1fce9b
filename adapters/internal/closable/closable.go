// Package closable provides a counter of a scheduler's unfinished work, and the wait for its end. After the counter is
// closed, only Again can increment it.
package closable

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/promise"
)

// A Counter counts the tasks that were accepted and have not ended. The zero Counter is open. In the state diagram -E>
// is a call of Enter, -A> of Again, -L> of Leave, -C> of Close:
//
//	open n    -E> open n+1
//	any n     -A> n+1          fails in the state closed 0
//	open n    -L> open n-1
//	open n    -C> closed n
//	closed n  -L> closed n-1   a Leave or Close that reaches closed 0 returns last = true
//
// Invariant: the state closed 0 is final, so at most one call reports that the work has ended.
type Counter struct{ n atomicx.Int64 } // the count, to which the method Close adds the constant closed

const closed = -1 << 62

// Enter increments the count and returns true. If c is closed, Enter returns false.
func (c *Counter) Enter() bool {
	for {
		n := c.n.Load()
		if n < 0 {
			return false
		}
		if c.n.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Again increments the count and returns true, even if c is closed. If c.Done() is true, Again returns false.
func (c *Counter) Again() bool {
	for n := c.n.Load(); n != closed; n = c.n.Load() {
		if more := n + 1; c.n.CompareAndSwap(n, more) {
			return true
		}
	}
	return false
}

// Leave decrements the count, and reports whether c is closed and the count is now zero.
func (c *Counter) Leave() (last bool) { return c.n.Add(-1) == closed }

// Close closes c. The first result reports whether c was open, and the second whether c was open with a count of zero.
func (c *Counter) Close() (first, last bool) {
	for {
		n := c.n.Load()
		if n < 0 {
			return false, false
		}
		if c.n.CompareAndSwap(n, n+closed) {
			return true, n == 0
		}
	}
}

// CloseIfDone closes c if c is open with a count of zero, and reports whether it closed c.
func (c *Counter) CloseIfDone() bool { return c.n.Load() == 0 && c.n.CompareAndSwap(0, closed) }

// Abandon closes c with a count of zero. Leave must not be called afterwards.
func (c *Counter) Abandon() { c.n.Store(closed) }

// Done reports whether c is closed and the count is zero.
func (c *Counter) Done() bool { return c.n.Load() == closed }

// Live returns the count.
func (c *Counter) Live() int64 {
	n := c.n.Load()
	if n < 0 {
		n -= closed
	}
	return n
}

// Wait suspends the caller until gone is resolved, and returns the error of gone. If ctx ends first, Wait returns the
// cancellation error. If ctx has ended and gone is resolved, gone wins.
func Wait(ctx context.Context, gone *promise.Promise[struct{}]) error {
	_, err := gone.Await(ctx)
	if _, ok, reason := gone.Try(); ok {
		return reason
	}
	return err
}
