package stage

import (
	"time"
)

const (
	windowTasks = 10
	windowTime  = int64(5 * time.Millisecond)
)

func (c *core) openWindow(now int64) {
	c.window = window{since: now, started: true, least: c.waiting, dropped: c.dropped}
}

// sample returns the figures of the window if it is over. The caller must hold the guard, and must call c.limit if the second result
// is true.
func (c *core) sample(now int64) (s Sample, due bool) {
	n := &c.window
	if !n.started {
		c.openWindow(now)
		return s, false
	}
	if c.limiting || n.done < windowTasks || now-n.since < windowTime {
		return s, false
	}
	c.limiting = true
	return Sample{
		Width: c.width, Busy: c.slots, MinQueue: n.least, Done: n.done, Dropped: int(c.dropped - n.dropped),
		Elapsed: time.Duration(now - n.since), Service: time.Duration(n.service / int64(n.done)),
	}, true
}

// limit calls the limiter. The caller must not hold the guard. limit locks the guard before it returns, even if the limiter panics
// or calls runtime.Goexit.
func (c *core) limit(s Sample) {
	p, width := c.pool, 0
	defer func() {
		p.guard.Lock()
		c.limiting = false
		now := p.now()
		if width > 0 && width != c.width {
			c.setWidth(width)
			c.server.admit(now)
		}
		c.openWindow(now)
	}()
	width = max(1, c.o.Limit.Update(s))
}
