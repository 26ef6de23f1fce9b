package stage

// Climb is a Limiter that finds the width at which the most tasks are done, between Min and Max; zero is 1 and 1000.
//
// While tasks wait, completions per second are a function of the width alone. Climb compares the rate here with the rate
// one step away. Wider is better if the gain in rate is at least a third of the gain in width, narrower if the loss in rate
// is less than a third of the loss in width. A step that is taken makes the next step larger by half, up to 1/2. A step that
// is refused turns the direction; if both directions were refused, it halves the step, down to 1/16. If the rate has changed at the same
// width, the resource has changed, and the next step is 1/4. A window is 10/step² completions. The first after a change is
// thrown away, and a window in which the queue was ever empty says nothing about the rate.
//
// If the queue was empty at some time in each window of a second, and less than half of the width was in use on average, the
// width is narrowed by a quarter, down to twice what was in use, and not below 16. Otherwise a width that is far too large
// would do harm when the load comes.
//
// It needs a queue to see anything: with Queue NoQueue it does nothing. It compares rates, since latencies alone,
// which other limiters compare, do not distinguish a slow resource from a crowded resource.
type Climb struct {
	Min, Max int

	step    float64 // the size of the next one; 0 before the first Update
	down    bool
	settled bool // the first samples after a change are over
	from    int  // the width that was left, while trying another
	trying  bool
	rate    float64 // measured at from
	refused bool    // the other way
	done    int
	elapsed float64
	resting float64 // seconds without a queue
	used    float64 // handlers, times seconds, in them
}

const (
	leastStep = 1.0 / 16
	firstStep = 1.0 / 4
	mostStep  = 1.0 / 2
	restWidth = 16
)

// Update implements Limiter.
func (c *Climb) Update(s Sample) (width int) {
	least, most := max(c.Min, 1), c.Max
	if most == 0 {
		most = 1000
	}
	if c.step == 0 {
		c.step = firstStep
	}
	width = min(max(s.Width, least), most)
	if width != s.Width {
		c.restart()
		return width
	}
	if s.MinQueue == 0 {
		return min(width, max(least, c.atRest(s)))
	}
	c.resting, c.used = 0, 0
	c.done += s.Done
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
	switch {
	case !c.settled:
		c.settled = true
		return width
	case !c.trying:
		if c.rate > 0 && c.from == width && (rate < c.rate*3/4 || rate > c.rate*4/3) {
			c.step = firstStep
		}
		c.from, c.rate = width, rate
	case c.worth(width, rate):
		c.from, c.rate = width, rate
		c.step = min(c.step*1.5, mostStep)
		c.refused = false
	default:
		c.trying, c.settled = false, false
		c.down = !c.down
		if c.refused {
			c.step = max(c.step/2, leastStep)
		}
		c.refused = !c.refused
		return c.from
	}
	return c.try(width, least, most)
}

// restart forgets the samples so far.
func (c *Climb) restart() { c.done, c.elapsed = 0, 0 }

// atRest returns the width after a window without a queue.
func (c *Climb) atRest(s Sample) (width int) {
	c.restart()
	c.resting += s.Elapsed.Seconds()
	c.used += s.Service.Seconds() * float64(s.Done)
	if c.resting < 1 {
		return s.Width
	}
	need := max(restWidth, int(2*c.used/c.resting))
	c.resting, c.used = 0, 0
	if need >= s.Width {
		return s.Width
	}
	c.trying, c.settled, c.rate = false, false, 0
	return max(need, s.Width*3/4)
}

// worth reports whether the width on trial is better than from.
func (c *Climb) worth(width int, rate float64) bool {
	gain, cost := rate/c.rate-1, float64(width)/float64(c.from)-1
	return gain > cost/3 // a loss below a third of the saving is worth it: then both are negative
}

// try returns the next width to try.
func (c *Climb) try(width, least, most int) int {
	for range 2 {
		to := width + max(1, int(float64(width)*c.step+0.5))
		if c.down {
			to = width - max(1, int(float64(width)*c.step+0.5))
		}
		if to = min(max(to, least), most); to != width {
			c.trying, c.settled = true, false
			return to
		}
		c.down = !c.down
	}
	return width
}
