package stage

import "time"

// A Limiter decides on the width of a stage. Update is called with the figures since the call before, or since the width
// changed, and returns the width from now on; it is called by one worker at a time, under no lock. A window is at least 10
// completions and 5 ms.
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

// adjust asks the limiter of c, if a window is over. It is called with the guard held and returns so.
func (p *Pool) adjust(w *worker, c *core) {
	n := &c.window
	if !n.started {
		c.openWindow(w.now)
		return
	}
	if c.limiting || n.done < windowTasks || w.now-n.since < windowTime {
		return
	}
	s := Sample{
		Width: c.width, Busy: c.slots, MinQueue: n.least, Done: n.done, Dropped: int(c.dropped - n.dropped),
		Elapsed: time.Duration(w.now - n.since), Service: time.Duration(n.service / int64(n.done)),
	}
	c.limiting = true
	w.at, w.task = nil, nil
	p.release()
	w.owed.pay()
	width := p.limited(w, c, s)
	p.guard.Lock()
	c.limiting = false
	if width = max(width, 1); width != c.width {
		c.setWidth(width)
		c.server.admit(w.now)
	}
	c.openWindow(p.now())
}

// limited calls the limiter. If that panics, or ends the goroutine, the worker ends, and its permit is given back.
func (p *Pool) limited(w *worker, c *core, s Sample) (width int) {
	returned := false
	defer func() {
		if !returned {
			p.guard.Lock()
			c.limiting = false
			c.openWindow(p.now())
			p.running--
			p.end(w)
		}
	}()
	width = c.o.Limit.Update(s)
	returned = true
	return width
}
