//go:build !linux || braid_portable

package eventloop

import (
	"syscall"
	"time"
)

func (d *fd) rawControl(f func(fd uintptr)) error {
	return d.raw(func(r syscall.RawConn) error { return r.Control(f) })
}

func (d *fd) rawRead(cs contexts, f func(fd uintptr) bool) error {
	_, err := d.rd.do(d, cs, func() (int, error) {
		return 0, d.raw(func(r syscall.RawConn) error { return r.Read(f) })
	})
	return err
}

func (d *fd) rawWrite(cs contexts, f func(fd uintptr) bool) error {
	_, err := d.wr.do(d, cs, func() (int, error) {
		return 0, d.raw(func(r syscall.RawConn) error { return r.Write(f) })
	})
	return err
}

func (d *fd) raw(use func(syscall.RawConn) error) error {
	c, ok := d.stock.(syscall.Conn)
	if !ok {
		return errNotSupported
	}
	r, err := c.SyscallConn()
	if err == nil {
		err = use(r)
	}
	if err != nil && d.closed.Load() { // the error of a closed file is not net.ErrClosed
		return errClosed
	}
	return bare(err)
}

func (d *fd) setNoDelay(on bool) error {
	if c, ok := d.stock.(interface{ SetNoDelay(bool) error }); ok {
		return bare(c.SetNoDelay(on))
	}
	return errNotSupported
}

func (d *fd) setKeepAlive(on bool) error {
	if c, ok := d.stock.(interface{ SetKeepAlive(bool) error }); ok {
		return bare(c.SetKeepAlive(on))
	}
	return errNotSupported
}

func (d *fd) setKeepAlivePeriod(period time.Duration) error {
	if c, ok := d.stock.(interface{ SetKeepAlivePeriod(time.Duration) error }); ok {
		return bare(c.SetKeepAlivePeriod(period))
	}
	return errNotSupported
}
