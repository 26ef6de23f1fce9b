//go:build explore

package coro

// Emulate makes c, which is new, the coroutine of goroutine id. next resumes it, and yield leaves it.
func (c *Coroutine) Emulate(id int64, next Next, yield Yield) {
	c.next, c.yield, c.why, c.stop = next, yield, Ended, func() {}
	c.gid.Store(id)
}

// Started takes the function of Start.
func (c *Coroutine) Started() (f func()) {
	f, c.f = c.f, nil
	return f
}
