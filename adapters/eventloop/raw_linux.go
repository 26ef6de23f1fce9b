//go:build !braid_portable

package eventloop

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

func (d *fd) rawControl(f func(fd uintptr)) error {
	if !d.incref() {
		return errClosed
	}
	defer d.decref()
	f(uintptr(d.sys))
	return nil
}

func (d *fd) rawRead(cs contexts, f func(fd uintptr) bool) error  { return d.raw(&d.rd, cs, f) }
func (d *fd) rawWrite(cs contexts, f func(fd uintptr) bool) error { return d.raw(&d.wr, cs, f) }

// raw calls f until f returns true, and waits for the side s before each further call. It makes the first call even
// without an event, because f may succeed without data.
func (d *fd) raw(s *side, cs contexts, f func(fd uintptr) bool) error {
	if err := s.acquireTurn(cs); err != nil {
		return err
	}
	defer s.give()
	for {
		s.mayBeReady()
		done := false
		if err := d.rawControl(func(fd uintptr) { done = f(fd) }); done || err != nil {
			return err
		}
		if err := s.wait(cs); err != nil {
			return err
		}
	}
}

func (d *fd) setOption(level, option, value int) error {
	var err error
	if e := d.rawControl(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), level, option, value) }); e != nil {
		return e
	}
	return os.NewSyscallError("setsockopt", err)
}

func (d *fd) setNoDelay(on bool) error {
	return d.setOption(unix.IPPROTO_TCP, unix.TCP_NODELAY, number(on))
}

func (d *fd) setKeepAlive(on bool) error {
	return d.setOption(unix.SOL_SOCKET, unix.SO_KEEPALIVE, number(on))
}

func (d *fd) setKeepAlivePeriod(period time.Duration) error {
	seconds := int((period + time.Second - 1) / time.Second)
	if err := d.setOption(unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, seconds); err != nil {
		return err
	}
	return d.setOption(unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, seconds)
}

func number(on bool) int {
	if on {
		return 1
	}
	return 0
}
