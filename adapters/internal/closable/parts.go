package closable

import "github.com/braidgo/braid/internal/atomicx"

// Parts is a Counter whose callers write to different cache lines. Each call of Enter and Leave names a part, and the part of the Leave need
// not be that of the Enter. So the count of one part may be negative, and only the sum means anything. In the state diagram of one part, -E>
// is a call of Enter, -L> of Leave, -C> of Close:
//
//	open n    -E> open n+1
//	open n    -L> open n-1
//	open n    -C> closed        n moves to the rest
//	closed    -L> closed        the rest is decremented; so is the part, which makes no difference
//
// Invariant: while Close moves the counts, the rest has a surplus that no number of Leaves uses up. Once the surplus is gone, all parts are
// closed, so the rest only falls, and the one call that makes it zero reports that the work has ended.
type Parts struct {
	mu      atomicx.Mutex // held by Close and Live: a part that Close moves in between would count twice
	closing atomicx.Bool  // set before the first part is closed, so that no Enter succeeds after another has failed
	rest    atomicx.Int64
	parts   []part
}

type part struct {
	n atomicx.Int64
	_ [120]byte // two cache lines, which the processor fetches together
}

const surplus = 1 << 60

// NewParts returns an open counter with n parts.
func NewParts(n int) *Parts { return &Parts{parts: make([]part, n)} }

// Enter increments the count and returns true. If c is closed, or is being closed, Enter returns false.
func (c *Parts) Enter(part uint) bool {
	if c.closing.Load() {
		return false
	}
	p := &c.parts[part].n
	for n := p.Load(); n > closed/2; n = p.Load() {
		if p.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}

// Leave decrements the count, and reports whether c is closed and the count is now zero.
func (c *Parts) Leave(part uint) (last bool) {
	if c.parts[part].n.Add(-1) > closed/2 {
		return false
	}
	return c.rest.Add(-1) == 0
}

// Close closes c, and reports whether c was open and the count was zero.
func (c *Parts) Close() (last bool) {
	if !c.closing.CompareAndSwap(false, true) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rest.Store(surplus)
	for i := range c.parts {
		c.rest.Add(c.parts[i].n.Swap(closed))
	}
	return c.rest.Add(-surplus) == 0
}

// Live returns the count. The parts are read one after another, so it is exact only while nobody calls Enter or Leave. The first
// parts are read last: a task that enters there and leaves in a later part meanwhile may be counted after its end, but not be missing before.
func (c *Parts) Live() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := int64(0)
	for i := range c.parts {
		if m := c.parts[len(c.parts)-1-i].n.Load(); m > closed/2 {
			n += m
		}
	}
	return max(0, n+c.rest.Load())
}
