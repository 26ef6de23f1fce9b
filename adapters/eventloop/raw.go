package eventloop

import (
	"syscall"
	"time"
)

// SyscallConn returns access to the descriptor, which still belongs to c. As in package net, the RawConn's Read and
// Write call their function again after each wait. These waits suspend the caller, but the function must not suspend.
func (c *Conn) SyscallConn() (syscall.RawConn, error) { return rawConn{c, nil}, nil }

// SetNoDelay sets whether small writes are sent immediately. The default is true.
func (c *Conn) SetNoDelay(on bool) error { return c.fail("set", c.fd.setNoDelay(on)) }

// SetKeepAlive sets whether the system probes an idle connection. By default, the first probe is sent after 15 seconds,
// as for connections of package net.
func (c *Conn) SetKeepAlive(on bool) error { return c.fail("set", c.fd.setKeepAlive(on)) }

// SetKeepAlivePeriod sets the idle time before the first probe, and the time between two probes.
func (c *Conn) SetKeepAlivePeriod(d time.Duration) error {
	return c.fail("set", c.fd.setKeepAlivePeriod(d))
}

// SyscallConn calls the net.Conn's SyscallConn, and fails if there is none. For a Conn of a Loop, raw Reads and Writes
// fail when a context of b is done.
func (b *boundConn) SyscallConn() (syscall.RawConn, error) {
	if b.own != nil {
		return rawConn{b.own, b.cs}, nil
	}
	if c, ok := b.Conn.(syscall.Conn); ok {
		return c.SyscallConn()
	}
	return nil, errNotSupported
}

// A rawConn is the syscall.RawConn of a Conn.
type rawConn struct {
	c  *Conn
	cs contexts
}

func (r rawConn) Control(f func(fd uintptr)) error {
	return r.c.fail("raw-control", r.c.fd.rawControl(f))
}

func (r rawConn) Read(f func(fd uintptr) (done bool)) error {
	return r.c.fail("raw-read", r.c.fd.rawRead(r.cs, f))
}

func (r rawConn) Write(f func(fd uintptr) (done bool)) error {
	return r.c.fail("raw-write", r.c.fd.rawWrite(r.cs, f))
}
