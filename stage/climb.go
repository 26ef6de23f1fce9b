package stage

// Climb returns a Limiter for one stage that finds the width with the highest throughput, from least to most. A least of 0 means 1, and a
// most of 0 means 1000. Stats.Reason has the reason of its last change of the width: a trial that begins, one that has failed, and so on,
// as the thread pool of .NET reports it for its own hill climbing. The texts are for people, and may change.
//
// While tasks wait, the completions per second depend only on the width. Climb compares the rate at the current width with the rate
// one step away. A step is a fraction of the width. A wider stage is better if the gain in rate is more than a third of the gain in
// width. A narrower stage is better if the loss in rate is less than a third of the loss in width. An accepted step makes the next
// step larger by half, up to 1/2. A rejected step reverses the direction; if both directions were rejected, the step is halved, down
// to 1/16. If the rate at the same width has fallen by a quarter or risen by a third, the resource has changed, and the next step is
// 1/4. A measurement takes 10/step² completions. The first completions after a change are discarded, and a window in which the queue
// was empty at some time is not used.
//
// Near the load for which the width is just enough, the queue is empty too often for a measurement. Climb then looks at the tasks that
// were refused: shed by Delay, rejected or displaced. If some were refused in a second in which the queue was often empty, the width
// grows by a quarter. If this does not reduce the share of refused tasks by a third, the width returns to its former value.
//
// Climb narrows an oversized stage: if no task was refused and the queue was empty at some time in each window of a second, and on
// average less than half of the width was in use, the width shrinks by a quarter. The result is at least 16 and at least twice the
// width in use. An oversized stage would do harm when the load rises.
//
// A handler that fails counts only for the width in use. Otherwise an outage, in which more handlers mean more failures per second,
// would look like a gain. A window in which every handler failed says nothing about the width.
//
// A stage with NoQueue is never measured, so its width grows only while that reduces the share of refused tasks. Climb compares rates,
// not latencies, because a latency alone does not distinguish a slow resource from an overloaded one.
func Climb(least, most int) Limiter { return &climb{min: least, max: most} }

type climb struct {
	min, max int

	step     float64 // the size of the next step; 0 before the first Update
	down     bool    // the next step narrows the stage
	settled  bool    // the first completions after a change have been discarded
	from     int     // the width before the trial
	trying   bool    // a step is on trial
	rate     float64 // the rate measured at the width c.from
	rejected bool    // the last step, in the other direction, was rejected
	done     int     // handlers that returned without an error
	elapsed  float64

	rest    rest
	relief  bool    // the width was increased because tasks were refused, and is on trial
	refusal float64 // the share of tasks refused before that

	reason string
}

// Reason is called after an Update that changes the width; see Limiter.
func (c *climb) Reason() string { return c.reason }

// A rest holds the figures since the last measurement. Only the windows in which the queue was empty at some time count for elapsed.
type rest struct {
	elapsed         float64
	used            float64 // handler-seconds
	served, refused int
}

const (
	leastStep = 1.0 / 16
	firstStep = 1.0 / 4
	mostStep  = 1.0 / 2
	restWidth = 16
)

// Update implements Limiter.
func (c *climb) Update(s Sample) (width int) {
	least, most := max(c.min, 1), c.max
	if most == 0 {
		most = 1000
	}
	if c.step == 0 {
		c.step = firstStep
	}
	width = min(max(s.Width, least), most)
	if width != s.Width {
		c.reason = "the bounds"
		c.restart()
		return width
	}
	good := s.Done - s.Failed
	if good == 0 {
		c.restart()
		c.rest = rest{}
		return width
	}
	c.rest.served += good
	c.rest.refused += s.Refused
	if s.MinQueue == 0 {
		c.restart()
		return c.atRest(s, least, most)
	}
	if c.rest.refused == 0 {
		c.rest = rest{}
	}
	c.done += good
	c.elapsed += s.Elapsed.Seconds()
	size := 10 / (c.step * c.step)
	if !c.settled {
		size /= 4
	}
	if float64(c.done) < size {
		return width
	}
	rate := float64(c.done) / c.elapsed
	c.restart()
	if !c.settled {
		c.settled = true
		return width
	}
	c.rest, c.relief = rest{}, false
	switch {
	case !c.trying:
		if c.rate > 0 && c.from == width && (rate < c.rate*3/4 || rate > c.rate*4/3) {
			c.step = firstStep
		}
		c.from, c.rate = width, rate
	case c.worth(width, rate):
		c.from, c.rate = width, rate
		c.step = min(c.step*1.5, mostStep)
		c.rejected = false
	default:
		c.trying, c.settled = false, false
		c.down = !c.down
		if c.rejected {
			c.step = max(c.step/2, leastStep)
		}
		c.rejected = !c.rejected
		c.reason = "the trial was no better"
		return c.from
	}
	return c.try(width, least, most)
}

// restart discards the samples so far.
func (c *climb) restart() { c.done, c.elapsed = 0, 0 }

// atRest returns the width after a window in which the queue was empty at some time.
func (c *climb) atRest(s Sample, least, most int) (width int) {
	r := &c.rest
	r.elapsed += s.Elapsed.Seconds()
	r.used += s.Service.Seconds() * float64(s.Done)
	if r.elapsed < 1 {
		return s.Width
	}
	need := max(restWidth, int(2*r.used/r.elapsed))
	refusal := float64(r.refused) / float64(r.refused+r.served)
	relief, reason := c.relief, ""
	c.rest, c.relief = rest{}, false
	switch {
	case relief && refusal > c.refusal*2/3:
		width, reason = c.from, "a larger width refused as many tasks"
	case refusal > 0:
		width, reason = s.Width+max(1, s.Width/4), "tasks were refused"
		c.from, c.relief, c.refusal = s.Width, true, refusal
	case need < s.Width:
		width, reason = max(need, s.Width*3/4), "less than half of the width was in use"
	default:
		return s.Width
	}
	c.trying, c.settled, c.rate = false, false, 0
	if width = min(max(width, least), most); width != s.Width {
		c.reason = reason
	}
	return width
}

// worth reports whether the width on trial is better than the width c.from.
func (c *climb) worth(width int, rate float64) bool {
	gain, cost := rate/c.rate-1, float64(width)/float64(c.from)-1
	return gain > cost/3 // gain and cost are negative if the stage was narrowed
}

// try returns the next width to try, or width if no step is possible.
func (c *climb) try(width, least, most int) int {
	for range 2 {
		to, reason := width+max(1, int(float64(width)*c.step+0.5)), "trial of a larger width"
		if c.down {
			to, reason = width-max(1, int(float64(width)*c.step+0.5)), "trial of a smaller width"
		}
		if to = min(max(to, least), most); to != width {
			c.reason = reason
			c.trying, c.settled = true, false
			return to
		}
		c.down = !c.down
	}
	return width
}
