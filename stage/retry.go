package stage

import (
	"time"

	"github.com/braidgo/braid/suspend"
)

// retry asks Options.Retry whether a task that has failed begins again. A task that has ended does not, nor one whose
// handler panicked.
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
	stop  func() bool // the timer; nil until it is there. Under the guard
}

// postpone is called under the guard; the caller starts the delay when the guard is free.
func (s *Stage[In, Out]) postpone(e item[In, Out], after time.Duration) *delay[In, Out] {
	s.retried++
	s.delayed++
	if after > 0 {
		s.pool.hold()
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
		d.over()
		return
	}
	stop := d.s.pool.afterFunc(d.after, d.over)
	d.s.pool.guard.Lock()
	d.stop = stop
	_, mine := d.s.later[d]
	d.s.pool.guard.Unlock()
	if !mine { // it is over, or Close has taken it just now
		stop()
	}
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
		s.queued(1)
	}
	s.pool.release()
}

// takeDelayed takes the tasks between two tries, for Close. The caller ends them, and stops the timers.
func (s *Stage[In, Out]) takeDelayed() (taken []item[In, Out], stop []func() bool) {
	for d := range s.later {
		taken = append(taken, d.e)
		if d.stop != nil { // or else start will see that the delay was taken
			stop = append(stop, d.stop)
		}
	}
	clear(s.later)
	s.delayed = 0
	s.pool.letGo()
	return taken, stop
}

// hold keeps the scheduler open, if it can be held: from the first delay on, until no task is left and the last worker has
// ended. A worker may be a plain goroutine by then, as a scheduler that closes starts no more tasks.
func (p *Pool) hold() {
	if p.held != nil {
		return
	}
	if h, ok := suspend.As[suspend.Holder](p.on); ok {
		if release, err := h.Hold(); err == nil {
			p.held = release
		}
	}
}

// letGo ends the hold if it is time.
func (p *Pool) letGo() {
	if p.held == nil || p.alive > 0 {
		return
	}
	for _, c := range p.stages {
		if c.waiting+c.delayed > 0 {
			return
		}
	}
	p.held()
	p.held = nil
}
