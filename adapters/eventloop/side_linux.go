//go:build !braid_portable

package eventloop

import (
	"os"
	"time"

	"github.com/braidgo/braid/suspend"
)

// A side is one direction of an fd: its turn, and the latch that says that a system call may succeed.
//
// The reactor sets the latch on every event. An operation clears it before a system call, and at no other time. If the
// call would block, the operation waits, unless the latch has been set since. So an edge between the call and the wait
// is not lost.
//
// Debt: setting ready, expired or closed must resume the waiters, under the guard.
type side struct {
	turn
	fd      *fd
	drained bool  // the last read got all there was; belongs to the turn
	ops     uint8 // operations elsewhere than on the reactor since one suspended or yielded; belongs to the turn

	// The rest is under the guard of the turn.
	ready     bool // the latch
	unsettled bool // an event has said that there may be more behind the data than data; stays set
	expired   bool
	closed    bool
	waiting   suspend.Queue[verdict, struct{}] // it holds the operation that has the turn, and readables
	deadline  int64                            // 0 means no deadline
	timer     *timer                           // runs at the deadline or earlier; made when there is a first
}

// A verdict is what ends the wait of a side.
type verdict uint8

const (
	undecided verdict = iota
	isReady
	isExpired
	isClosed
)

func (v verdict) err() error {
	switch v {
	case isExpired:
		return os.ErrDeadlineExceeded
	case isClosed:
		return errClosed
	}
	return nil
}

// begin returns with the turn, unless the operation fails before it has begun. Now and then it yields.
func (s *side) begin(cs contexts) error {
	if cs != nil {
		if err := cs.err(); err != nil {
			return err
		}
	}
	s.guard.Lock()
	if s.held {
		s.guard.Unlock()
		if err := s.takeSlow(cs); err != nil {
			return err
		}
		s.guard.Lock()
	}
	s.held = true
	v := s.failed()
	s.guard.Unlock()
	if v != undecided {
		s.give()
		return v.err()
	}
	switch {
	case s.fd.r.pace():
	case s.ops < fewOps || s.ops < yieldEvery && !s.fd.r.core.Outside(): // a task that is outside goes back to its reactor soon
		s.ops++
	default:
		s.ops = 0
		s.yield()
	}
	return nil
}

// yield gives the turn back if the task ends in the Yield: otherwise the next operation would wait for ever.
func (s *side) yield() {
	back := false
	defer func() {
		if !back {
			s.give()
		}
	}()
	suspend.Yield()
	back = true
}

// failed returns the verdict that fails an operation even if it could succeed, or undecided.
func (s *side) failed() verdict {
	switch {
	case s.closed:
		return isClosed
	case s.expired:
		return isExpired
	case s.deadline != 0 && s.deadline <= s.fd.r.loop.now():
		s.expired = true
		return isExpired
	}
	return undecided
}

// mayBeReady clears the latch, for the system call that comes next. It reports false if the call is sure to find
// nothing: the last one got less than it asked for, and there has been no event since.
func (s *side) mayBeReady() bool {
	s.guard.Lock()
	may := !s.drained || s.ready || s.unsettled
	if may {
		s.ready, s.drained = false, false
	}
	s.guard.Unlock()
	return may
}

// wait returns nil when a system call may succeed.
func (s *side) wait(cs contexts) error {
	s.ops = 0
	ctx, stop := cs.join()
	if stop != nil {
		defer stop()
	}
	v, err := suspend.Wait[verdict](ctx, (*readiness)(s), false)
	if err != nil {
		return cs.explain(err)
	}
	return v.err()
}

// look returns the verdict if there is no need to wait. The guard is held.
func (s *side) look() (v verdict, ok bool) {
	if v = s.failed(); v == undecided && s.ready {
		v = isReady
	}
	return v, v != undecided
}

// waitAny is side.wait on all of ds at once.
func waitAny(cs contexts, ds []*fd) error {
	if len(ds) == 1 {
		return ds[0].rd.wait(cs)
	}
	ctx, stop := cs.join()
	if stop != nil {
		defer stop()
	}
	any := make([]suspend.Op[verdict], len(ds))
	for i, d := range ds {
		d.rd.ops = 0
		any[i] = suspend.OpOf[verdict]((*readiness)(&d.rd))
	}
	v, err := suspend.Do(ctx, suspend.Choose(any...))
	if err != nil {
		return cs.explain(err)
	}
	return v.err()
}

// readiness is what waiting for a side performs.
type readiness side

func (s *readiness) Guard() *suspend.Guard              { return &s.guard }
func (s *readiness) Enqueue(r suspend.Resumer[verdict]) { s.waiting.Push(r, struct{}{}) }
func (s *readiness) Remove(r suspend.Resumer[verdict])  { s.waiting.Remove(r) }

func (s *readiness) Try() (v verdict, ok bool, err error) {
	v, ok = (*side)(s).look()
	return v, ok, nil
}

// resume pays all waiters: the operation with the turn and any number of readables. The guard is held.
func (s *side) resume(v verdict) { s.waiting.ResumeAll(v, nil) }

func (s *side) signal(unsettled bool) {
	s.guard.Lock()
	s.ready = true
	s.unsettled = s.unsettled || unsettled
	s.resume(isReady)
	s.guard.Unlock()
}

func (s *side) close() {
	s.guard.Lock()
	s.closed = true
	s.resume(isClosed)
	if s.timer != nil {
		s.fd.r.timers.stop(s.timer)
	}
	s.guard.Unlock()
}

// setDeadline acts at once on an operation that waits.
func (s *side) setDeadline(at time.Time) error {
	s.guard.Lock()
	defer s.guard.Unlock()
	if s.closed {
		return errClosed
	}
	s.expired, s.deadline = false, 0
	if at.IsZero() {
		return nil
	}
	d := time.Until(at)
	if d <= 0 {
		s.expired = true
		s.resume(isExpired)
		return nil
	}
	s.deadline = s.fd.r.timers.after(d)
	if s.timer == nil {
		s.timer = newTimer(s.expire)
	}
	s.fd.r.timers.set(s.timer, s.deadline) // set for earlier already, it is left, and resets itself when it runs
	return nil
}

// expire is run by the timer.
func (s *side) expire() {
	s.guard.Lock()
	defer s.guard.Unlock()
	switch {
	case s.closed || s.deadline == 0:
	case s.failed() == isExpired:
		s.resume(isExpired)
	default:
		s.fd.r.timers.set(s.timer, s.deadline)
	}
}
