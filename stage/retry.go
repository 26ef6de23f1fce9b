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

// A delay is a task between two tries. It is in s.later from postpone until the timer, or Close, takes it out. Until then the
// scheduler of the stage is held open.
type delay[In, Out any] struct {
	s       *Stage[In, Out]
	e       item[In, Out]
	after   time.Duration
	release func()
	stop    func() bool // the timer; nil until it is there. Under the guard
}

// postpone is called under the guard; the caller starts the delay when the guard is free.
func (s *Stage[In, Out]) postpone(e item[In, Out], after time.Duration) *delay[In, Out] {
	s.retried++
	s.delayed++
	d := &delay[In, Out]{s: s, e: e, after: after, release: s.pool.hold()}
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
	_, mine := s.later[d]
	if mine {
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
	if mine {
		d.release()
	}
}

// takeDelayed takes the tasks between two tries, for Close. The caller ends them, and then calls each of release.
func (s *Stage[In, Out]) takeDelayed() (taken []item[In, Out], release []func()) {
	for d := range s.later {
		taken = append(taken, d.e)
		release = append(release, d.release)
		if d.stop != nil { // or else start will see that the delay was taken
			release = append(release, func() { d.stop() })
		}
	}
	clear(s.later)
	s.delayed = 0
	return taken, release
}

// hold keeps the scheduler open until release is called, if it can be held.
func (p *Pool) hold() (release func()) {
	if h, ok := suspend.As[suspend.Holder](p.on); ok {
		if release, err := h.Hold(); err == nil {
			return release
		}
	}
	return func() {}
}
