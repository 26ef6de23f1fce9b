package stage

import (
	"time"
)

// A shedder decides which tasks have waited too long. The algorithm is CoDel, as the folly library applies it to queues of requests.
// The queue is bad if in an interval even the shortest wait was longer than the target. While the queue is bad, tasks that have
// waited longer than twice the target are shed.
//
// There are two differences from folly. A lock protects a shedder, so nothing is atomic. And for 100 ms after a bad interval,
// intervals are only as long as the target. Otherwise, at a load a little above the capacity, bad and good intervals would
// alternate, and the queue would grow during each good interval.
//
// Nichols and Jacobson, "Controlling queue delay" (2012); Maurer, "Fail at scale" (2015).
type shedder struct {
	target  int64 // 0 disables shedding
	started bool
	until   int64 // the end of the interval
	wary    int64 // the time until which intervals are short
	least   int64 // the shortest wait in the interval
	bad     bool
}

const shedInterval = int64(100 * time.Millisecond)

// late reports whether a task that has waited for wait nanoseconds at time now must be shed.
func (s *shedder) late(wait, now int64) bool {
	if s.target == 0 {
		return false
	}
	if !s.started || now >= s.until {
		switch {
		case !s.started:
			s.wary = now // now may be negative, and 0 would then lie in the future
		case s.bad:
			s.wary = now + shedInterval
		}
		s.bad = s.started && s.least > s.target
		s.until = now + shedInterval
		if !s.bad && now < s.wary {
			s.until = now + min(s.target, shedInterval)
		}
		s.started, s.least = true, wait
	}
	s.least = min(s.least, wait)
	return s.bad && wait > 2*s.target
}
