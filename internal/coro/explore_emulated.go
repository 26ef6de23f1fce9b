//go:build explore

package coro

// Emulate makes c, which must be new, the coroutine of goroutine id. The function next resumes the coroutine, and the
// function yield switches back from it.
func (c *Coroutine) Emulate(id int64, next Next, yield Yield) {
	c.next, c.yield, c.why = next, yield, Ended
	c.gid.Store(id)
}

// Started removes and returns the function that Start has set.
func (c *Coroutine) Started() (f func()) {
	f, c.f = c.f, nil
	return f
}
