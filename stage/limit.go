package stage

import "time"

// A Limiter decides on the width of a stage. Update is called with the figures since the call before, or since the width
// changed, and returns the width from now on; it is called by one worker or caller of Do at a time, under no lock. A window is at
// least 10 completions and 5 ms.
type Limiter interface{ Update(s Sample) (width int) }

// A Sample is the figures of a window.
type Sample struct {
	Width    int
	Busy     int // handlers that run at its end
	MinQueue int // the fewest tasks that waited
	Done     int // handlers that returned
	Dropped  int // of these, those that failed with an ErrOverload
	Elapsed  time.Duration
	Service  time.Duration // the mean of the handlers
}

// A window has the figures of the next Sample, under the guard.
type window struct {
	since   int64
	started bool
	least   int
	done    int
	dropped uint64 // the count of the stage when it began
	service int64
}

const (
	windowTasks = 10
	windowTime  = int64(5 * time.Millisecond)
)

func (c *core) openWindow(now int64) {
	c.window = window{since: now, started: true, least: c.waiting, dropped: c.dropped}
}

// sample returns the figures of a window that is over. It is called with the guard held, and if due, limit follows.
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

// limit asks the limiter. It is called without the guard and returns with it, also if the limiter panics or ends the goroutine.
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

// adjust asks the limiter of c, if a window is over. It is called by a worker, with the guard held, and returns so.
func (p *Pool) adjust(w *worker, c *core) {
	if s, due := c.sample(w.now); due {
		w.at, w.task = nil, nil
		p.release()
		w.owed.pay()
		p.limited(w, c, s)
	}
}

// limited is limit for a worker, which ends if the limiter does not return. Then it gives its permit back.
func (p *Pool) limited(w *worker, c *core, s Sample) {
	returned := false
	defer func() {
		if !returned {
			p.running--
			p.end(w)
		}
	}()
	c.limit(s)
	returned = true
}

// adjustInline is adjust for the caller of a Do.
func (c *core) adjustInline() {
	p := c.pool
	p.guard.Lock()
	defer p.release()
	if s, due := c.sample(p.now()); due {
		p.release()
		c.limit(s)
	}
}
