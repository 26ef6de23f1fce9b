package netstack

import (
	"context"
	"net"
	"os"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/waiter"

	"github.com/braidgo/braid/internal/again"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/suspend"
)

// A side is one direction of an endpoint. It counts the events of the stack. An operation notes the count, tries, and if the try would
// block waits for another count. So an event between the try and the wait is not lost. It is the suspend.Source of the wait.
//
//	count n    -T> a try would block: the task waits for a count other than n
//	count n    -E> count n+1
//	any        -D> late: operations fail with os.ErrDeadlineExceeded, until there is another deadline
//	any        -C> closed: operations fail with net.ErrClosed
//
// The stack calls NotifyEvent (-E>) under its own locks. -D> is a timer or SetDeadline, -C> is Close, before the
// endpoint is closed: otherwise a Read would take its own Close for the peer's.
//
// Debt: -E>, -D> and -C> resume every waiter, under the guard.
type side struct {
	turn  mutex.Mutex // held by the operation under way, across its waits
	entry waiter.Entry
	seen  uint64 // the count before the last try; belongs to the turn
	ops   uint8  // operations since one has waited or yielded; belongs to the turn

	guard    suspend.Guard
	count    uint64
	late     bool
	closed   bool
	waiters  suspend.Queue[struct{}, struct{}] // the operation with the turn
	looking  suspend.Queue[struct{}, struct{}] // readables
	deadline time.Time                         // zero means no deadline
	timer    *time.Timer                       // made for the first deadline
}

// yieldEvery is how many operations may succeed without a wait before one yields.
const yieldEvery = 64

// do calls try until it need not wait. If ctx is done first, or already, do fails with the error of the cancellation.
func (s *side) do(ctx context.Context, try func() tcpip.Error) error {
	if err := s.turn.Lock(ctx); err != nil {
		return err
	}
	defer s.turn.Unlock()
	if s.ops++; s.ops == yieldEvery {
		s.ops = 0
		suspend.Yield()
	}
	for {
		if err := s.look(); err != nil {
			return err
		}
		err := try()
		if err == nil {
			return nil
		}
		if _, wait := err.(*tcpip.ErrWouldBlock); !wait {
			if own := s.look(); own != nil { // it is the cause
				return own
			}
			return errno(err)
		}
		s.ops = 0
		if _, err := suspend.Wait[struct{}](ctx, (*waiting)(s), false); err != nil {
			return err
		}
	}
}

// look notes the count, or returns why an operation fails whatever the stack says.
func (s *side) look() error {
	s.guard.Lock()
	defer s.guard.Unlock()
	s.seen = s.count
	switch {
	case s.closed:
		return net.ErrClosed
	case s.late:
		return os.ErrDeadlineExceeded
	}
	return nil
}

func (s *side) isClosed() bool {
	s.guard.Lock()
	defer s.guard.Unlock()
	return s.closed
}

// waiting is the suspend.Source of an operation's wait.
type waiting side

func (s *waiting) Guard() *suspend.Guard               { return &s.guard }
func (s *waiting) Enqueue(r suspend.Resumer[struct{}]) { s.waiters.Push(r, struct{}{}) }
func (s *waiting) Remove(r suspend.Resumer[struct{}])  { s.waiters.Remove(r) }

func (s *waiting) Try() (none struct{}, ok bool, err error) {
	return none, s.count != s.seen || s.late || s.closed, nil
}

// NotifyEvent implements waiter.EventListener.
func (s *side) NotifyEvent(waiter.EventMask) {
	s.guard.Lock()
	s.count++
	s.wakeLocked()
	s.guard.Unlock()
}

func (s *side) wakeLocked() {
	s.waiters.ResumeAll(struct{}{}, nil)
	s.looking.ResumeAll(struct{}{}, again.Err)
}

// close reports whether it is the first.
func (s *side) close() (first bool) {
	s.guard.Lock()
	defer s.guard.Unlock()
	first = !s.closed
	s.closed = true
	s.wakeLocked()
	if s.timer != nil {
		s.timer.Stop()
	}
	return first
}

// setDeadline acts at once on operations that wait.
func (s *side) setDeadline(at time.Time) error {
	s.guard.Lock()
	defer s.guard.Unlock()
	if s.closed {
		return net.ErrClosed
	}
	s.deadline, s.late = at, false
	switch left := time.Until(at); {
	case at.IsZero(): // the timer finds no deadline
	case left <= 0:
		s.expireLocked()
	case s.timer == nil:
		s.timer = time.AfterFunc(left, s.expire)
	default:
		s.timer.Reset(left)
	}
	return nil
}

// expire is run by the timer.
func (s *side) expire() {
	s.guard.Lock()
	defer s.guard.Unlock()
	if s.closed || s.deadline.IsZero() {
		return
	}
	if left := time.Until(s.deadline); left > 0 { // it has been moved, or the clock of the day has been put back
		s.timer.Reset(left)
		return
	}
	s.expireLocked()
}

func (s *side) expireLocked() {
	s.late = true
	s.wakeLocked()
}
