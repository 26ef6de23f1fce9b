package runner

import "time"

// A caution selects steps that run outside (see lease) from the start, before they can be stuck. One hand-over is not
// enough if many tasks wait natively, such as the tasks of a stock connection pool: each would stop all other tasks
// once. So after a hand-over each of the next tasks must prove itself with a few steps outside, its proofs. A task that
// has waited or computed for a long time takes more steps outside, and causes more tasks to prove themselves. If there is no
// such task, the stuck step was the only one, or the operating system did not run its thread for a while. The number of
// proofs in a period is limited. Otherwise a busy reactor would run all its steps outside, and its own goroutine would
// be queued behind them.
type caution struct {
	after, slowly, shortly time.Duration
	left                   int       // proofs left in this period; while there are any, the caution is careful: tasks must prove themselves
	until                  time.Time // the time at which the period ends in any case
	period                 uint8     // the number of the current period
}

const (
	proofs       = 2   // the number of steps outside by which a task proves itself
	enough       = 512 // proofs after a hand-over
	more         = 32  // proofs after a slow step
	sticky       = 64  // further steps outside for a task that was stuck or slow
	carefulFor   = 10  // the length of a period, as a multiple of caution.after
	slowInStuck  = 2   // a slow step lasts longer than caution.after/slowInStuck
	shortInStuck = 20  // a short step lasts at most caution.after/shortInStuck
)

func newCaution(after time.Duration) caution {
	return caution{after: after, slowly: after / slowInStuck, shortly: after / shortInStuck}
}

func (c *caution) careful() bool { return c.left > 0 }

// expire ends the period if its time is over. The Runner calls it at the beginning of each turn.
func (c *caution) expire() {
	if c.careful() && time.Now().After(c.until) {
		c.left = 0
	}
}

// carries reports whether the next step of t must run outside. Callbacks never run outside, because they run one after
// another.
func (c *caution) carries(t *Task) bool {
	if t.calls {
		return false
	}
	if c.careful() && t.period != c.period {
		t.period, t.outside = c.period, max(t.outside, proofs)
		c.left -= proofs
	}
	if t.outside == 0 {
		return false
	}
	t.outside--
	return true
}

// taken begins a period because a step of t was stuck.
func (c *caution) taken(t *Task) {
	c.beginPeriod(time.Now())
	t.outside = sticky
}

// beginPeriod begins a period, in which the caution is careful.
func (c *caution) beginPeriod(now time.Time) {
	c.left = enough
	c.period++
	c.until = now.Add(carefulFor * c.after)
}

// proved makes t take more steps outside, and extends the period, if the last step of t outside was slow.
func (c *caution) proved(t *Task) {
	if t.slow {
		t.slow, t.outside = false, sticky
		if c.careful() {
			c.left += more
			c.until = time.Now().Add(carefulFor * c.after)
		}
	}
}
