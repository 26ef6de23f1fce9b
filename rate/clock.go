package rate

import "time"

// A clock is the time of a Limiter. It follows the clocks of the callers, of which one may be behind another, so it may go back. If it
// then jumps ahead of its peak, the time up to the peak does not count again; otherwise two clocks in turn would make tokens. If it
// runs on below the peak, the caller's clock was set back, and its time counts.
//
//	the clock is             at the time   since then counts
//	last = 7                 9             7 to 9
//	last = 7                 3             nothing; goBack(3) makes it last = 3, peak = 7
//	last = 3, peak = 7       9             7 to 9
//	last = 3, peak = 7       6             3 to 6; advance(6) forgets the peak
type clock struct {
	last time.Time
	peak time.Time // the time from which the clock has gone back to last; zero if it has advanced since
}

// goBack sets c back to now, if now is before the last time.
func (c *clock) goBack(now time.Time) {
	if now.Before(c.last) {
		if c.peak.Before(c.last) {
			c.peak = c.last
		}
		c.last = now
	}
}

// advance sets c to now, if now is after the last time.
func (c *clock) advance(now time.Time) {
	if now.After(c.last) {
		c.last, c.peak = now, time.Time{}
	}
}

// since returns the beginning of the time that counts at the time t: the last time, or the peak if t is not before it.
func (c *clock) since(t time.Time) time.Time {
	if c.peak.After(c.last) && !t.Before(c.peak) {
		return c.peak
	}
	return c.last
}

// dueAfter returns the time at which a wait of this length is over on c, for a caller whose clock shows now. With last = 3 and peak = 7, a wait
// of 2 is over at 5 if now is 3. If now is 9, it is over at 9, because of the time since last only 7 to 9 counts.
func (c *clock) dueAfter(now time.Time, wait time.Duration) time.Time {
	due := c.last.Add(wait)
	if due.Before(now) {
		due = now
	}
	return c.since(due).Add(wait)
}
