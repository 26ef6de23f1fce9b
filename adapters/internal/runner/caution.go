package runner

import "time"

// A caution makes steps outside before they are stuck. One hand-over is not enough where many tasks wait natively, such
// as the tasks of a stock pool: each would stop all other tasks once. So after a hand-over each of the next tasks
// proves itself, by a few steps outside. A task that has waited, or computed for long, goes on outside for more steps,
// and makes more tasks prove themselves. Where none has, the step was the only one, or the system has not run its
// thread for a while. A period has a number of proofs, to avoid that a busy reactor makes all its steps outside then:
// otherwise its own goroutine would be queued behind them.
type caution struct {
	after, slowly, shortly time.Duration
	left                   int       // proofs of this period; the caution is careful while there are any
	until                  time.Time // ends the period in any case
	period                 uint8     // numbers the periods of being careful
}

const (
	proofs       = 2   // steps outside by which a task proves itself
	enough       = 512 // proofs after a hand-over
	more         = 32  // proofs after a slow step
	sticky       = 64  // steps outside of a task that was stuck or slow
	carefulFor   = 10  // times the time after which a step is stuck
	slowInStuck  = 2   // slow steps make a stuck one
	shortInStuck = 20  // short steps make a stuck one
)

func newCaution(after time.Duration) caution {
	return caution{after: after, slowly: after / slowInStuck, shortly: after / shortInStuck}
}

func (c *caution) careful() bool { return c.left > 0 }

// turn begins a turn.
func (c *caution) turn() {
	if c.careful() && time.Now().After(c.until) {
		c.left = 0
	}
}

// carries reports whether the next step of t is to be made outside. Callbacks are not: they follow each other.
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

// taken is called with a task that was stuck.
func (c *caution) taken(t *Task) {
	c.begin(time.Now())
	t.outside = sticky
}

// begin begins a period of being careful.
func (c *caution) begin(now time.Time) {
	c.left = enough
	c.period++
	c.until = now.Add(carefulFor * c.after)
}

// proved is called with a task that has made a step outside.
func (c *caution) proved(t *Task) {
	if t.slow {
		t.slow, t.outside = false, sticky
		if c.careful() {
			c.left += more
			c.until = time.Now().Add(carefulFor * c.after)
		}
	}
}
