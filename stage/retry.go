package stage

import "time"

// retry asks Options.Retry whether a task that has failed begins again. A task that has ended does not, nor one whose handler panicked.
func (s *Stage[In, Out]) retry(t *task, err error, try int) (after time.Duration, again bool) {
	if _, panicked := err.(*PanicError); panicked || s.o.Retry == nil || t.over() {
		return 0, false
	}
	return s.o.Retry(err, try)
}

// A delay is a task between two tries. It is in s.later from postpone until the timer, or Close, takes it out.
type delay[In, Out any] struct {
	s     *Stage[In, Out]
	e     item[In, Out]
	after time.Duration
}

// postpone is called under the guard; the caller starts the delay when the guard is free.
func (s *Stage[In, Out]) postpone(e item[In, Out], after time.Duration) *delay[In, Out] {
	s.retried++
	s.delayed++
	d := &delay[In, Out]{s, e, after}
	if s.later == nil {
		s.later = map[*delay[In, Out]]struct{}{}
	}
	s.later[d] = struct{}{}
	return d
}

func (d *delay[In, Out]) start() {
	if d.after <= 0 {
		d.over()
		return
	}
	d.s.pool.afterFunc(d.after, d.over)
}

// over puts the task in front of the queue, unless a Close has taken it.
func (d *delay[In, Out]) over() {
	s := d.s
	s.pool.guard.Lock()
	if _, mine := s.later[d]; mine {
		delete(s.later, d)
		s.delayed--
		d.e.since = s.pool.now()
		if s.o.LIFO {
			s.ring.pushBack(d.e)
		} else {
			s.ring.pushFront(d.e)
		}
		s.waiting++
	}
	s.pool.release()
}
