//go:build !braid_portable

package eventloop

import (
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// sendFile sends a file, starting at the file's current offset. The parameter most is the maximum number of bytes. If
// the system does not support this transfer, sendFile sends nothing and fails with errNotSupported.
func (d *fd) sendFile(cs contexts, f openFile, most int64) (n int64, err error) {
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || !d.socket {
		return 0, errNotSupported
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	return d.writes(cs, "sendfile", func(sys int) (bool, int, error) {
		m, err := 0, error(nil)
		if e := raw.Control(func(file uintptr) { m, err = unix.Sendfile(sys, int(file), nil, int(min(most-n, maxSend))) }); e != nil {
			return true, 0, e
		}
		if n == 0 && (err == unix.EINVAL || err == unix.ENOSYS || err == unix.EOPNOTSUPP) {
			err = errNotSupported
		}
		n += int64(max(m, 0))
		return err == nil && (m == 0 || n == most), max(m, 0), err
	})
}

// maxSend is the maximum number of bytes that one system call sends, so that no call holds the reactor for long.
const maxSend = 1 << 20

// writeBuffers writes all of b, and removes the written bytes from b.
func (d *fd) writeBuffers(cs contexts, b *net.Buffers) (int64, error) {
	return d.writes(cs, "writev", func(sys int) (bool, int, error) {
		for len(*b) > 0 && len((*b)[0]) == 0 {
			*b = (*b)[1:]
		}
		if len(*b) == 0 {
			return true, 0, nil
		}
		n, err := unix.Writev(sys, (*b)[:min(len(*b), maxVector)])
		for left := max(n, 0); left > 0; {
			if first := (*b)[0]; left >= len(first) {
				left -= len(first)
				(*b)[0] = nil
				*b = (*b)[1:]
			} else {
				(*b)[0] = first[left:]
				left = 0
			}
		}
		return err == nil && len(*b) == 0, max(n, 0), err
	})
}

const maxVector = 1024 // IOV_MAX

// writes calls the function one until that function reports that it is done, or fails. All calls together form a
// single Write. While the send buffer is full, the method waits. It returns the total number of bytes written.
func (d *fd) writes(cs contexts, call string, one func(sys int) (done bool, n int, err error)) (n int64, err error) {
	if err := d.wr.acquireTurn(cs); err != nil {
		return 0, err
	}
	defer d.wr.give()
	for {
		d.wr.mayBeReady()
		if !d.incref() {
			return n, errClosed
		}
		done, m, err := one(d.sys)
		d.decref()
		n += int64(m)
		switch {
		case done:
			return n, err
		case err == nil && m == 0:
			return n, io.ErrUnexpectedEOF
		case err == nil, err == unix.EINTR:
			continue
		case err != unix.EAGAIN:
			if errno, ok := err.(unix.Errno); ok && errno != unix.EOPNOTSUPP {
				err = os.NewSyscallError(call, err)
			}
			return n, err
		}
		if err := d.wr.wait(cs); err != nil {
			return n, err
		}
	}
}
