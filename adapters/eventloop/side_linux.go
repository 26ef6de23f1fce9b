//go:build !braid_portable

package eventloop

import (
	"context"
	"os"
	"time"

	"github.com/braidgo/braid/suspend"
)

// A side is one direction of an fd, with a turn and a latch. The latch is the field ready, which is true if a system
// call may succeed.
//
// The reactor sets the latch on every event. An operation clears the latch only before a system call. If the call would
// block, the operation waits, unless the latch was set again during the call. So an event between the call and the wait
// is not lost.
//
// Debt: code that sets s.ready, s.expired or s.closed must resume the waiters, under the guard. The method signal need not resume them if
// the system says that there is nothing to read.
type side struct {
	turn
	fd      *fd
	drained bool  // the last read has emptied the buffer; used only by the holder of the turn
	ops     uint8 // operations outside the reactor since the last wait or yield; used only by the holder of the turn

	// The turn's guard protects the fields below.
	ready     bool // the latch
	unsettled bool // an event has reported that an end or an error may follow the data; never cleared
	expired   bool
	closed    bool
	operates  bool                             // the operation that holds the turn is in waiting
	waiting   suspend.Queue[verdict, struct{}] // the operation that holds the turn, and readables
	deadline  int64                            // 0 means no deadline
	timer     *timer                           // runs at the deadline or earlier; created for the first deadline
}

// A verdict is the outcome of a wait for a side.
type verdict uint8

const (
	undecided verdict = iota
	isReady
	isExpired
	isClosed
)

func (v verdict) expired() bool { return v == isExpired }

func (v verdict) err() error {
	switch v {
	case isExpired:
		return os.ErrDeadlineExceeded
	case isClosed:
		return errClosed
	}
	return nil
}

// acquireTurn acquires the turn. acquireTurn fails if a context is done, the side is closed, or the deadline has
// passed. After several operations without a wait, acquireTurn yields.
func (s *side) acquireTurn(cs contexts) error {
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
	case s.ops < fewOps || s.ops < yieldEvery && !s.fd.r.core.Outside(): // a task outside its reactor yields early, to return to the reactor
		s.ops++
	default:
		s.ops = 0
		s.yield()
	}
	return nil
}

// yield calls suspend.Yield. If the task exits in that call, yield releases the turn, because the next operation would
// otherwise wait for ever.
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

// failed returns isClosed or isExpired if every operation must fail, and undecided otherwise. The caller must hold the
// guard.
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

// mayBeReady clears the latch before a system call. mayBeReady returns false if the call could not succeed: the last
// read has emptied the buffer, and no event has arrived since.
func (s *side) mayBeReady() bool {
	s.guard.Lock()
	may := !s.drained || s.ready || s.unsettled
	if may {
		s.ready, s.drained = false, false
	}
	s.guard.Unlock()
	return may
}

// wait waits until a system call may succeed.
func (s *side) wait(cs contexts) error {
	s.ops = 0
	ctx := background
	switch len(cs) {
	case 0:
	case 1:
		ctx = cs[0]
	default:
		return s.waitJoined(cs)
	}
	v, err := suspend.Wait[verdict](ctx, (*readiness)(s))
	if err != nil {
		return err
	}
	return v.err()
}

// waitJoined is like wait, but for several contexts. It must not be inlined, because its values would enlarge the frame of wait. With the
// larger frame, a task of Serve that reads would not fit into its first stack of 2 KB.
//
//go:noinline
func (s *side) waitJoined(cs contexts) error {
	ctx, stop := cs.join()
	if stop != nil {
		defer stop()
	}
	v, err := suspend.Wait[verdict](ctx, (*readiness)(s))
	if err != nil {
		return cs.explain(err)
	}
	return v.err()
}

var background = context.Background()

// decided returns the verdict so far, and false if the operation has to wait. The caller must hold the guard.
func (s *side) decided() (v verdict, ok bool) {
	if v = s.failed(); v == undecided && s.ready {
		v = isReady
	}
	return v, v != undecided
}

// waitAny waits until a system call may succeed on any of ds.
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

// A readiness is the suspend.Source of a wait for a side.
type readiness side

func (s *readiness) Guard() *suspend.Guard { return &s.guard }

func (s *readiness) Enqueue(r suspend.Resumer[verdict]) {
	s.waiting.Push(r, struct{}{})
	s.operates = true
}

func (s *readiness) Remove(r suspend.Resumer[verdict]) {
	if s.waiting.Remove(r) {
		s.operates = false
	}
}

func (s *readiness) Try() (v verdict, ok bool, err error) {
	v, ok = (*side)(s).decided()
	return v, ok, nil
}

// resume resumes all waiters: the operation that holds the turn, and any number of readables. The caller must hold the
// guard.
func (s *side) resume(v verdict) {
	s.waiting.ResumeAll(v, nil)
	s.operates = false
}

func (s *side) signal(unsettled bool) {
	s.guard.Lock()
	s.ready = true
	s.unsettled = s.unsettled || unsettled
	// The event may be older than the readables: another Read may have taken its bytes since. Then there is nothing for the operation either.
	n := s.waiting.Len()
	if n == 1 && s.operates || n > 0 && s.hasInput() {
		s.resume(isReady)
	}
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

// setDeadline sets the deadline. A waiting operation obeys the new deadline.
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
	s.fd.r.timers.set(s.timer, s.deadline) // the timer keeps an earlier time, and expire then sets it again
	return nil
}

// expire is called by the timer.
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
