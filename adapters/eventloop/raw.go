package eventloop

import (
	"syscall"
	"time"
)

// SyscallConn returns access to the descriptor, which stays c's. Its Read and Write call f again after each wait, as in
// package net. They suspend the caller where they wait, and f must not suspend.
func (c *Conn) SyscallConn() (syscall.RawConn, error) { return rawConn{c, nil}, nil }

// SetNoDelay says whether small writes are sent at once. That is the default.
func (c *Conn) SetNoDelay(on bool) error { return c.fail("set", c.fd.setNoDelay(on)) }

// SetKeepAlive says whether the system probes a connection that is idle. By default it does so after 15 seconds, as for
// connections of package net.
func (c *Conn) SetKeepAlive(on bool) error { return c.fail("set", c.fd.setKeepAlive(on)) }

// SetKeepAlivePeriod sets after how much idle time the system probes the connection, and how often.
func (c *Conn) SetKeepAlivePeriod(d time.Duration) error {
	return c.fail("set", c.fd.setKeepAlivePeriod(d))
}

// SyscallConn calls SyscallConn of the net.Conn, and fails if there is none. Reads and Writes of a Conn end with the
// contexts.
func (b *boundConn) SyscallConn() (syscall.RawConn, error) {
	if b.own != nil {
		return rawConn{b.own, b.cs}, nil
	}
	if c, ok := b.Conn.(syscall.Conn); ok {
		return c.SyscallConn()
	}
	return nil, errNotSupported
}

// A rawConn is a syscall.RawConn.
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
