//go:build !braid_portable

package eventloop

import (
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// An fd is a non-blocking descriptor that is registered with the poller of one reactor, from its making to its
// close.
//
// Every system call on it runs between incref and decref. Close marks it, after which incref refuses, and whoever
// drops the last reference closes the descriptor: its number cannot mean something else while a call is under way.
type fd struct {
	sys  int
	refs atomicx.Int64 // system calls under way, one for being open, and the mark
	r    *reactor
	slot int32  // in the poller
	over func() // called by the first close; may be nil

	// gapless says that a read gets less than it asks for only if there is no more. A unix socket also stops where
	// something came along with the data.
	gapless bool

	rd, wr side
}

const closing = 1 << 62

// newFD registers sys, and closes it if that fails.
func newFD(r *reactor, sys int, over func()) (*fd, error) {
	d := &fd{sys: sys, r: r, over: over}
	d.refs.Store(1)
	d.rd.fd, d.wr.fd = d, d
	d.rd.ready, d.wr.ready = true, true
	if err := r.poller.add(d); err != nil {
		unix.Close(sys)
		return nil, err
	}
	return d, nil
}

func (d *fd) incref() bool {
	for {
		n := d.refs.Load()
		if n >= closing {
			return false
		}
		if d.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (d *fd) decref() {
	if d.refs.Add(-1) == closing {
		unix.Close(d.sys)
	}
}

// close fails what is under way and what is to come with errClosed. Of several closes the first returns nil.
func (d *fd) close() error {
	for {
		n := d.refs.Load()
		if n >= closing {
			return errClosed
		}
		if d.refs.CompareAndSwap(n, n+closing) {
			break
		}
	}
	d.r.poller.remove(d)
	d.rd.close()
	d.wr.close()
	if d.over != nil {
		d.over()
	}
	d.decref()
	return nil
}

// event is called by the reactor.
func (d *fd) event(ev uint32) {
	const last = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR | unix.EPOLLPRI
	if ev&(unix.EPOLLIN|last) != 0 {
		d.rd.signal(ev&last != 0)
	}
	if ev&(unix.EPOLLOUT|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		d.wr.signal(false)
	}
}

// read is net.Conn's, with the bare error.
func (d *fd) read(cs contexts, p []byte) (n int, err error) {
	if err := d.rd.begin(cs); err != nil {
		return 0, err
	}
	defer d.rd.give()
	if len(p) == 0 {
		return 0, nil
	}
	p = p[:min(len(p), maxRW)]
	for {
		if d.rd.mayBeReady() {
			if !d.incref() {
				return 0, errClosed
			}
			n, err = unix.Read(d.sys, p)
			d.decref()
			switch {
			case err == nil && n == 0:
				return 0, io.EOF
			case err == nil:
				d.rd.drained = n < len(p) && d.gapless
				return n, nil
			case err == unix.EINTR:
				continue
			case err != unix.EAGAIN:
				return 0, os.NewSyscallError("read", err)
			}
		}
		if err := d.rd.wait(cs); err != nil {
			return 0, err
		}
	}
}

const maxRW = 1 << 30

// write is net.Conn's, with the bare error: it goes on until all is written.
func (d *fd) write(cs contexts, p []byte) (n int, err error) {
	if err := d.wr.begin(cs); err != nil {
		return 0, err
	}
	defer d.wr.give()
	for {
		d.wr.mayBeReady()
		if !d.incref() {
			return n, errClosed
		}
		m, err := unix.Write(d.sys, p[n:min(len(p), n+maxRW)])
		d.decref()
		switch {
		case err == nil:
			if n += m; n == len(p) {
				return n, nil
			}
			if m == 0 {
				return n, io.ErrUnexpectedEOF
			}
			continue
		case err == unix.EINTR:
			continue
		case err != unix.EAGAIN:
			return n, os.NewSyscallError("write", err)
		}
		if err := d.wr.wait(cs); err != nil {
			return n, err
		}
	}
}

// connected waits until the connect under way has succeeded or failed.
func (d *fd) connected(cs contexts) error {
	if err := d.wr.begin(cs); err != nil {
		return err
	}
	defer d.wr.give()
	for {
		d.wr.mayBeReady()
		if !d.incref() {
			return errClosed
		}
		errno, err := unix.GetsockoptInt(d.sys, unix.SOL_SOCKET, unix.SO_ERROR)
		if err == nil && errno == 0 {
			if _, err = unix.Getpeername(d.sys); err == unix.ENOTCONN {
				err = unix.EINPROGRESS
			}
		} else if err == nil {
			err = unix.Errno(errno)
		}
		d.decref()
		switch err {
		case nil, unix.EISCONN:
			return nil
		case unix.EINPROGRESS, unix.EALREADY, unix.EINTR:
		default:
			return os.NewSyscallError("connect", err)
		}
		if err := d.wr.wait(cs); err != nil {
			return err
		}
	}
}

func (d *fd) shutdown(how int) error {
	if !d.incref() {
		return errClosed
	}
	defer d.decref()
	return os.NewSyscallError("shutdown", unix.Shutdown(d.sys, how))
}

func (d *fd) closeRead() error  { return d.shutdown(unix.SHUT_RD) }
func (d *fd) closeWrite() error { return d.shutdown(unix.SHUT_WR) }

func (d *fd) setReadDeadline(t time.Time) error  { return d.rd.setDeadline(t) }
func (d *fd) setWriteDeadline(t time.Time) error { return d.wr.setDeadline(t) }

// A side is one direction of an fd: the turn of those who use it, and the latch that says that a system call may
// succeed.
//
// The reactor sets the latch on every event. Who has the turn clears it, before a system call and at no other time;
// finds that the call would block; and waits, unless the latch has been set since. So an edge that comes between
// the call and the wait is not lost.
//
// Debt: who sets ready, expired or closed owes the waiter a resume, under the guard.
type side struct {
	turn
	fd      *fd
	drained bool  // the last read got all there was; of whoever has the turn
	ops     uint8 // operations since one suspended or yielded; of whoever has the turn

	// The rest is under the guard of the turn.
	ready     bool // the latch
	unsettled bool // an event has said that there may be more behind the data than data; stays set
	expired   bool
	closed    bool
	waiter    suspend.Resumer[verdict] // of whoever has the turn; zero: does not wait
	deadline  int64                    // 0: none
	timer     *timer                   // runs at the deadline or earlier; made when there is a first
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
	if s.ops++; s.ops > yieldEvery {
		s.ops = 0
		suspend.Yield()
	}
	return nil
}

// failed tells of what fails an operation even if it could succeed.
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

// mayBeReady clears the latch, for the system call that comes next. It reports false if that call is sure to find
// nothing: the last one got less than it asked for, and there has been no event since.
func (s *side) mayBeReady() bool {
	s.guard.Lock()
	defer s.guard.Unlock()
	if s.drained && !s.ready && !s.unsettled {
		return false
	}
	s.ready, s.drained = false, false
	return true
}

// wait returns nil when a system call may succeed.
func (s *side) wait(cs contexts) error {
	s.ops = 0
	ctx, stop := cs.join()
	if stop != nil {
		defer stop()
	}
	v, err := suspend.Suspend(ctx, func(r suspend.Resumer[verdict]) (verdict, bool) {
		s.guard.Lock()
		defer s.guard.Unlock()
		if v := s.failed(); v != undecided {
			return v, true
		}
		if s.ready {
			return isReady, true
		}
		s.waiter = r
		return undecided, false
	})
	if err != nil {
		s.forget()
		return cs.explain(err)
	}
	return v.err()
}

// forget withdraws a waiter that has left by itself.
func (s *side) forget() {
	s.guard.Lock()
	s.waiter = suspend.Resumer[verdict]{}
	s.guard.Unlock()
}

// resume pays the waiter. The guard is held.
func (s *side) resume(v verdict) {
	if s.waiter != (suspend.Resumer[verdict]{}) {
		s.waiter.Resume(v, nil)
		s.waiter = suspend.Resumer[verdict]{}
	}
}

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

// setDeadline acts at once on whoever waits.
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
	s.fd.r.timers.set(s.timer, s.deadline) // set for earlier already, it is left: when it runs it sees
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
