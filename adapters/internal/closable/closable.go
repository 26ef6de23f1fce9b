// Package closable is the count of a scheduler's work that can be closed. From then on only Again raises it.
package closable

import "github.com/braidgo/braid/internal/atomicx"

// A Counter counts the tasks that were accepted and have not ended. -E> is an Enter, -A> an Again, -L> a Leave, -C> a Close. The zero Counter
// is open.
//
//	open n    -E> open n+1
//	any n     -A> n+1          unless it is closed 0
//	open n    -L> open n-1
//	open n    -C> closed n
//	closed n  -L> closed n-1   and the Leave that comes to 0 says so, as does a Close at 0
//
// Invariant: a closed Counter does not leave 0, so one caller at most sees it end.
type Counter struct{ n atomicx.Int64 } // closed: less closed

const closed = -1 << 62

// Enter counts one more. False: the Counter is closed.
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

// Again is an Enter from within, which succeeds after Close, too. False: the Counter is Done.
func (c *Counter) Again() bool {
	for n := c.n.Load(); n != closed; n = c.n.Load() {
		if more := n + 1; c.n.CompareAndSwap(n, more) {
			return true
		}
	}
	return false
}

// Leave counts one less, and reports whether that was the last of a closed Counter.
func (c *Counter) Leave() (last bool) { return c.n.Add(-1) == closed }

// Close closes c. first: it was open. last: nothing is left to end, as a Leave would say.
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

// CloseIfDone closes c if nothing is left to end, and reports whether it did.
func (c *Counter) CloseIfDone() bool { return c.n.Load() == 0 && c.n.CompareAndSwap(0, closed) }

// Abandon closes c with nothing left. No Leave may follow.
func (c *Counter) Abandon() { c.n.Store(closed) }

// Done reports whether c is closed and everything has ended.
func (c *Counter) Done() bool { return c.n.Load() == closed }

// Live returns the count.
func (c *Counter) Live() int64 {
	n := c.n.Load()
	if n < 0 {
		n -= closed
	}
	return n
}
