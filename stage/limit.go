package stage

import (
	"time"
)

const (
	windowTasks = 10
	windowTime  = int64(5 * time.Millisecond)
)

// SetWidth sets the maximum number of tasks in progress to n. SetWidth also sets the width of the pool, unless the pool is shared.
// Handlers that already run above the new width are not interrupted.
func (s *Stage[In, Out]) SetWidth(n int) {
	if n < 1 {
		panic("stage: SetWidth with a width less than one")
	}
	s.pool.guard.Lock()
	s.setWidth(n, "SetWidth")
	s.admit(s.pool.now())
	s.pool.unlockAndPay()
}

func (c *core) setWidth(n int, reason string) {
	c.width, c.reason = n, reason
	if c.o.Pool == nil {
		c.pool.width = n
	}
	c.lose()
}

func (c *core) openWindow(now int64) {
	c.window = window{since: now, started: true, least: c.waiting, dropped: c.dropped, refused: c.refused()}
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
		Width: c.width, Busy: c.taken, MinQueue: n.least, Done: n.done, Failed: n.failed,
		Dropped: int(c.dropped - n.dropped), Refused: int(c.refused() - n.refused),
		Elapsed: time.Duration(now - n.since), Service: time.Duration(n.service / int64(n.done)),
	}, true
}

// limit calls the limiter. The caller must not hold the guard. limit locks the guard before it returns, even if the limiter panics
// or calls runtime.Goexit.
func (c *core) limit(s Sample) {
	p, width, reason := c.pool, 0, ""
	defer func() {
		p.guard.Lock()
		c.limiting = false
		now := p.now()
		// A limiter that changes nothing must not undo a SetWidth, so width is compared with that of the sample, too.
		if width > 0 && width != s.Width && width != c.width {
			c.setWidth(width, reason)
			c.server.admit(now)
		}
		c.openWindow(now)
	}()
	to := max(1, c.o.Limit.Update(s))
	if l, ok := c.o.Limit.(interface{ Reason() string }); ok && to != s.Width {
		reason = l.Reason()
	}
	width = to
}

// adjust calls the limiter of c if a window is over. The caller must hold p.guard, which is held again when adjust returns.
func (p *Pool) adjust(w *worker, c *core) {
	if s, due := c.sample(w.now); due {
		w.at, w.task = nil, nil
		p.unlockAndPay()
		w.owed.pay()
		p.limited(w, c, s)
	}
}

// limited calls c.limit for a worker. If the limiter does not return, the worker gives back its permit and ends.
func (p *Pool) limited(w *worker, c *core, s Sample) {
	returned := false
	defer func() {
		if !returned {
			p.running--
			p.endWorker(w)
		}
	}()
	c.limit(s)
	returned = true
}

// adjustInline does for the caller of a Do what Pool.adjust does for a worker.
func (c *core) adjustInline() {
	p := c.pool
	p.guard.Lock()
	defer p.unlockAndPay()
	if s, due := c.sample(p.now()); due {
		p.unlockAndPay()
		c.limit(s)
	}
}
