package stage

import (
	"time"

	"github.com/braidgo/braid/suspend"
)

// postpone makes e a delayed task. The caller must hold the guard, and must call start on the result without it.
func (s *Stage[In, Out]) postpone(e item[In, Out], after time.Duration) *delay[In, Out] {
	s.retried++
	s.postponed(1)
	if e.ticket == lent {
		s.lentLater++
	}
	d := &delay[In, Out]{s: s, e: e, after: after}
	if s.later == nil {
		s.later = map[*delay[In, Out]]struct{}{}
	}
	s.later[d] = struct{}{}
	return d
}

func (d *delay[In, Out]) start() {
	if d.after <= 0 {
		d.tryAgain()
		return
	}
	p := d.s.pool
	timers := p.hold()
	stop := []func() bool{suspend.AfterFunc(timers, d.after, d.tryAgain)}
	if d.e.t.until != cut {
		stop = append(stop, d.e.t.AfterFunc(d.tryAgain)) // a cancelled task returns to the queue now, so that a worker can end it
	}
	p.guard.Lock()
	d.stop = stop
	_, mine := d.s.later[d]
	letGo := p.letGo()
	p.guard.Unlock()
	if !mine { // the delay is over, or Close has just taken the task
		stopAll(stop)
	}
	letGo()
}

func stopAll(stop []func() bool) {
	for _, f := range stop {
		f()
	}
}

// tryAgain puts the task at the front of the queue, unless a Close has taken it.
func (d *delay[In, Out]) tryAgain() {
	s := d.s
	var stop []func() bool
	s.pool.guard.Lock()
	if _, mine := s.later[d]; mine {
		delete(s.later, d)
		stop = d.stop
		s.postponed(-1)
		if a := d.e.t.asked; a != nil {
			a.in.Store(&s.core)
		}
		d.e.since = s.pool.now()
		switch {
		case d.e.ticket == lent:
			s.lentLater--
			s.hurry.pushBack(d.e)
		case s.o.LIFO:
			s.line(d.e.t).pushBack(d.e)
		default:
			s.line(d.e.t).pushFront(d.e)
		}
		s.queued(1)
		s.letBegin() // the batch may be full now
		if !s.listed {
			s.list()
		}
		s.pool.suspect(d.e.t.asked)
		s.lose()
	}
	s.pool.unlockAndPay()
	stopAll(stop)
}

// takeDelayed removes the delayed tasks from s.later, for Close. The caller must end the tasks and call the stop functions.
func (s *Stage[In, Out]) takeDelayed() (taken []item[In, Out], stop []func() bool) {
	for d := range s.later {
		taken = append(taken, d.e)
		stop = append(stop, d.stop...) // d.stop is nil until d.start has run; d.start will then find that the task was taken
	}
	clear(s.later)
	s.lentLater = 0
	s.postponed(-s.delayed)
	return taken, stop
}
