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

// A side is one direction of an endpoint, and counts the events of the stack. An operation stores the count in the
// field seen, and then tries to finish without waiting. If the try would block, the operation waits until the count
// differs from the stored one. So an event between the try and the wait is not lost.
//
//	count n    -T> a try would block: the task waits for a count other than n
//	count n    -E> count n+1
//	any        -D> late: operations fail with os.ErrDeadlineExceeded until a new deadline is set
//	any        -C> closed: operations fail with net.ErrClosed
//
// -E> is NotifyEvent, which the stack calls under its own locks. -D> is the timer or SetDeadline. -C> is Close, which
// closes the sides before the endpoint; otherwise a Read would mistake the local Close for a close by the peer.
//
// Debt: -E>, -D> and -C> must resume every waiter, under the guard.
type side struct {
	turn  mutex.Mutex // held by the current operation, even while it waits
	entry waiter.Entry
	seen  uint64 // the value of count before the last try; used only by the holder of the turn
	ops   uint8  // operations since the last wait or yield; used only by the holder of the turn

	guard    suspend.Guard
	count    uint64
	late     bool
	closed   bool
	waiters  suspend.Queue[struct{}, struct{}] // the operation that holds the turn
	looking  suspend.Queue[struct{}, struct{}] // the readables that wait
	deadline time.Time                         // zero means no deadline
	timer    *time.Timer                       // created for the first deadline
}

// yieldEvery is the number of operations without a wait after which an operation yields.
const yieldEvery = 64

// do calls the function try. If the call would block, do waits for an event and repeats the call. If ctx is done,
// before or during a wait, do fails with the cancellation error.
func (s *side) do(ctx context.Context, try func() tcpip.Error) error {
	if err := s.turn.LockContext(ctx); err != nil {
		return err
	}
	defer s.turn.Unlock()
	if s.ops++; s.ops == yieldEvery {
		s.ops = 0
		suspend.Yield()
	}
	for {
		if err := s.markSeen(); err != nil {
			return err
		}
		err := try()
		if err == nil {
			return nil
		}
		if _, wait := err.(*tcpip.ErrWouldBlock); !wait {
			if own := s.markSeen(); own != nil { // Close or the deadline has caused err
				return own
			}
			return errno(err)
		}
		s.ops = 0
		if _, err := suspend.Wait[struct{}](ctx, (*waiting)(s)); err != nil {
			return err
		}
	}
}

// markSeen stores s.count in s.seen. It fails if the side is closed or its deadline has passed.
func (s *side) markSeen() error {
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

// close marks s closed and wakes its waiters. close reports whether s was open.
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

// setDeadline sets the deadline. A waiting operation obeys the new deadline.
func (s *side) setDeadline(at time.Time) error {
	s.guard.Lock()
	defer s.guard.Unlock()
	if s.closed {
		return net.ErrClosed
	}
	s.deadline, s.late = at, false
	switch left := time.Until(at); {
	case at.IsZero(): // expire ignores a zero deadline
	case left <= 0:
		s.expireLocked()
	case s.timer == nil:
		s.timer = time.AfterFunc(left, s.expire)
	default:
		s.timer.Reset(left)
	}
	return nil
}

// expire is called by the timer.
func (s *side) expire() {
	s.guard.Lock()
	defer s.guard.Unlock()
	if s.closed || s.deadline.IsZero() {
		return
	}
	if left := time.Until(s.deadline); left > 0 { // the deadline was moved, or the wall clock was set back
		s.timer.Reset(left)
		return
	}
	s.expireLocked()
}

func (s *side) expireLocked() {
	s.late = true
	s.wakeLocked()
}
