// Package closable is the count of a scheduler's work that can be closed. From then on the count only falls.
package closable

import "github.com/braidgo/braid/internal/atomicx"

// A Counter counts the tasks that were accepted and have not ended. -E> is an Enter, -L> a Leave, -C> a Close. The zero Counter is open.
//
//	open n    -E> open n+1
//	open n    -L> open n-1
//	open n    -C> closed n
//	closed n  -L> closed n-1   and the Leave that comes to 0 says so, as does a Close at 0
//
// Invariant: a closed Counter only falls, so one caller at most sees it end.
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
