package stage

import (
	"time"
)

// A shedder decides which tasks have waited too long. It is CoDel as folly has it, for queues of requests: a bad queue is one
// in which even the task that waited least, in an interval, waited longer than the target; while the queue is bad, tasks
// that waited longer than twice the target are shed.
//
// Differences: it is used under a lock, so nothing is atomic. And once the queue has been bad, intervals are short, as long as
// the target, until it was good for a whole one. Otherwise a queue that is bad in one interval and good in the next, as it
// is where the load is not much larger than the capacity, would grow for an interval each time.
//
// Nichols and Jacobson, "Controlling queue delay" (2012); Maurer, "Fail at scale" (2015).
type shedder struct {
	target  int64 // 0 means that nothing is shed
	started bool
	until   int64 // the end of the interval
	wary    int64 // intervals are short before that time
	least   int64 // the shortest wait in it
	bad     bool
}

const shedInterval = int64(100 * time.Millisecond)

// late reports whether a task that has waited so long, now, is to be shed.
func (s *shedder) late(wait, now int64) bool {
	if s.target == 0 {
		return false
	}
	if !s.started || now >= s.until {
		switch {
		case !s.started:
			s.wary = now // the clock may be before zero
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
