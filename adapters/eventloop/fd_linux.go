//go:build !braid_portable

package eventloop

import (
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/braidgo/braid/internal/atomicx"
)

// An fd is a non-blocking descriptor, which stays registered with the poller of one reactor from newFD until close.
//
// Every system call on the descriptor runs between incref and decref. After close, incref fails. The call of decref
// that drops the last reference closes the descriptor, so that the descriptor's number cannot be reused during a system
// call.
type fd struct {
	system
	refs atomicx.Int64 // number of system calls under way, plus 1 until the fd is closed; the method close adds the constant closing
	r    *reactor
	slot int32  // index in the poller's slots
	over func() // called by the first close; may be nil

	// gapless means that a read fills its buffer unless no more data is available. For a unix socket gapless is false,
	// because a read also stops where ancillary data arrived. For an adopted pipe gapless is false, because a read
	// stops at the end of a packet if the pipe's writer has set O_DIRECT, and the reader cannot see that flag.
	gapless bool
	bounded bool // a short write means that the buffer is full
	packets bool // a read of zero bytes is an empty packet, and not the end of a stream
	inet4   bool // an IPv4 socket, which accepts no IPv6 addresses

	rd, wr side
}

const closing = 1 << 62

// newFD returns an fd that is registered with r. If newFD fails, it closes sys.
func newFD(r *reactor, sys int, over func()) (*fd, error) {
	d := &fd{r: r, over: over}
	d.sys = sys
	d.refs.Store(1)
	d.rd.fd, d.wr.fd = d, d
	d.rd.ready, d.wr.ready = true, true
	if err := r.poller.add(d); err != nil {
		d.sysClose()
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
		d.sysClose()
	}
}

// close makes operations fail with errClosed, including those under way. The first of several calls returns nil; later
// calls fail.
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

// event signals each side that ev concerns. The reactor calls this method.
func (d *fd) event(ev uint32) {
	const last = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR | unix.EPOLLPRI
	if ev&(unix.EPOLLIN|last) != 0 {
		d.rd.signal(ev&last != 0)
	}
	if ev&(unix.EPOLLOUT|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		d.wr.signal(false)
	}
}

// read implements Conn.Read, but does not wrap errors in a *net.OpError.
func (d *fd) read(cs contexts, p []byte) (n int, err error) {
	if err = d.rd.acquireTurn(cs); err != nil {
		return 0, err
	}
	defer d.rd.give()
	for {
		if n, err = d.tryRead(p); err != unix.EAGAIN { // further variables would enlarge the frame in which a task waits
			return n, err
		}
		if err = d.rd.wait(cs); err != nil {
			return 0, err
		}
	}
}

// tryRead returns unix.EAGAIN if the reader must wait. It must not be inlined, because its values would enlarge the frame of read, in which
// a task waits.
//
//go:noinline
func (d *fd) tryRead(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	p = p[:min(len(p), maxRW)]
	for d.rd.mayBeReady() {
		if !d.incref() {
			return 0, errClosed
		}
		n, err = d.sysRead(p)
		d.decref()
		switch {
		case err == nil && n == 0 && !d.packets:
			return 0, io.EOF
		case err == nil:
			d.rd.drained = n < len(p) && d.gapless
			return n, nil
		case err == unix.EAGAIN:
			return 0, err
		case err != unix.EINTR:
			return 0, os.NewSyscallError("read", err)
		}
	}
	return 0, unix.EAGAIN
}

const maxRW = 1 << 30

// write implements Conn.Write, but does not wrap errors in a *net.OpError.
func (d *fd) write(cs contexts, p []byte) (n int, err error) {
	if err := d.wr.acquireTurn(cs); err != nil {
		return 0, err
	}
	defer d.wr.give()
	for {
		d.wr.mayBeReady()
		if !d.incref() {
			return n, errClosed
		}
		rest := p[n:min(len(p), n+maxRW)]
		m, err := d.sysWrite(rest)
		d.decref()
		switch {
		case err == nil:
			if n += m; n == len(p) {
				return n, nil
			}
			if m == 0 {
				return n, io.ErrUnexpectedEOF
			}
			if m == len(rest) || !d.bounded {
				continue
			} // a short write means that the buffer is full, see epoll(7)
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

// connected waits until the connect under way has succeeded. If the connect fails, connected closes d.
func (d *fd) connected(cs contexts) error {
	up := false
	defer func() {
		if !up { // the connect has failed, or a method of a context has panicked
			_ = d.close()
		}
	}()
	if err := d.wr.acquireTurn(cs); err != nil {
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
			up = true
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
