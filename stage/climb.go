package stage

// Climb is a Limiter that finds the width with the highest throughput, from Min to Max; zero means 1 for Min and 1000 for Max.
//
// While tasks wait, the completions per second depend only on the width. Climb compares the rate at the current width with the rate
// one step away. A step is a fraction of the width. A wider stage is better if the gain in rate is more than a third of the gain in
// width. A narrower stage is better if the loss in rate is less than a third of the loss in width. An accepted step makes the next
// step larger by half, up to 1/2. A rejected step reverses the direction; if both directions were rejected, the step is halved, down
// to 1/16. If the rate at the same width has fallen by a quarter or risen by a third, the resource has changed, and the next step is
// 1/4. A measurement takes 10/step² completions. The first completions after a change are discarded, and a window in which the queue
// was empty at some time is not used.
//
// Climb narrows an oversized stage: if the queue was empty at some time in each window of a second, and on average less than half of
// the width was in use, the width shrinks by a quarter. The result is at least 16 and at least twice the width in use. An oversized
// stage would do harm when the load rises.
//
// Climb measures only while tasks wait, so it cannot widen a stage with NoQueue. Climb compares rates, not latencies, because a
// latency alone does not distinguish a slow resource from an overloaded one.
type Climb struct {
	Min, Max int

	step    float64 // the size of the next step; 0 before the first Update
	down    bool    // the next step narrows the stage
	settled bool    // the first completions after a change have been discarded
	from    int     // the width before the trial
	trying  bool    // a step is on trial
	rate    float64 // the rate measured at the width c.from
	refused bool    // the last step, in the other direction, was rejected
	done    int
	elapsed float64
	resting float64 // seconds in windows in which the queue was empty at some time
	used    float64 // handler-seconds in these windows
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

// restart discards the samples so far.
func (c *Climb) restart() { c.done, c.elapsed = 0, 0 }

// atRest returns the width after a window in which the queue was empty at some time.
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

// worth reports whether the width on trial is better than the width c.from.
func (c *Climb) worth(width int, rate float64) bool {
	gain, cost := rate/c.rate-1, float64(width)/float64(c.from)-1
	return gain > cost/3 // gain and cost are negative if the stage was narrowed
}

// try returns the next width to try, or width if no step is possible.
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
