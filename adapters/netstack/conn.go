package netstack

import (
	"bytes"
	"context"
	"io"
	"net"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/waiter"
)

var background = context.Background()

// A Conn is a net.Conn of a Stack. Its methods may be called concurrently, from tasks of any scheduler and from
// goroutines. A call that has to wait suspends its caller. Concurrent Writes are not interleaved. Deadlines and Close
// take effect immediately on operations that wait. A task whose operations never have to wait yields after 64
// operations, so that other tasks can run.
//
// As in package net, an error is an *net.OpError. It wraps an errno such as syscall.ECONNRESET, or
// os.ErrDeadlineExceeded, or net.ErrClosed.
type Conn struct {
	endpoint
	local, remote net.Addr
	in            tcpip.SliceWriter // used by the Read that holds the turn
	out           bytes.Reader      // used by the Write that holds the turn
}

// An endpoint wraps an endpoint of gVisor's stack, and holds the state of the operations in each direction.
type endpoint struct {
	stack  *Stack
	ep     tcpip.Endpoint
	queue  *waiter.Queue
	rd, wr side
}

// register registers e with gVisor for its events, and with s, so that closing s closes e. If s is closed, register
// closes e and fails.
func (e *endpoint) register(s *Stack, ep tcpip.Endpoint, queue *waiter.Queue) error {
	e.stack, e.ep, e.queue = s, ep, queue
	const ends = waiter.EventErr | waiter.EventHUp | waiter.EventRdHUp
	e.rd.entry.Init(&e.rd, waiter.ReadableEvents|ends)
	e.wr.entry.Init(&e.wr, waiter.WritableEvents|ends)
	queue.EventRegister(&e.rd.entry)
	queue.EventRegister(&e.wr.entry)
	if !s.add(e) {
		e.dispose()
		return net.ErrClosed
	}
	return nil
}

// dispose closes e without removing it from the Stack. The first of several calls returns nil; later calls fail.
func (e *endpoint) dispose() error {
	if !e.rd.close() {
		return net.ErrClosed
	}
	e.wr.close()
	e.queue.EventUnregister(&e.rd.entry)
	e.queue.EventUnregister(&e.wr.entry)
	e.ep.Close()
	return nil
}

// close closes e. Operations fail with net.ErrClosed, including those under way. The first of several calls returns
// nil; later calls fail.
func (e *endpoint) close() error {
	e.stack.forget(e)
	return e.dispose()
}

// connected sets the addresses and the keep-alive options of c after its endpoint has connected.
func (c *Conn) connected() {
	local, _ := c.ep.GetLocalAddress()
	remote, _ := c.ep.GetRemoteAddress()
	c.local, c.remote = tcpAddr(local), tcpAddr(remote)
	if idle := c.stack.keepAlive; idle > 0 {
		_ = c.SetKeepAlivePeriod(idle)
		_ = c.SetKeepAlive(true)
	}
}

// Read reads the available bytes into p. Read suspends the caller while no bytes are available.
func (c *Conn) Read(p []byte) (int, error) { return c.ReadContext(background, p) }

// Write writes all of p. Write suspends the caller while the send buffer is full. If Write fails, n bytes have been
// written.
func (c *Conn) Write(p []byte) (n int, err error) { return c.WriteContext(background, p) }

// ReadContext is like Read, but fails with the cancellation error if ctx is done already or while the call waits. In
// that case no byte is lost.
func (c *Conn) ReadContext(ctx context.Context, p []byte) (n int, err error) {
	err = c.rd.do(ctx, func() tcpip.Error {
		if len(p) == 0 {
			return nil
		}
		c.in = p
		r, err := c.ep.Read(&c.in, tcpip.ReadOptions{})
		c.in, n = nil, r.Count
		if n > 0 {
			c.ep.ModerateRecvBuf(n)
		}
		return err
	})
	if err != nil && err != io.EOF {
		err = c.fail("read", err)
	}
	return n, err
}

// WriteContext is like Write, but fails with the cancellation error if ctx is done already or while the call waits.
func (c *Conn) WriteContext(ctx context.Context, p []byte) (n int, err error) {
	err = c.wr.do(ctx, func() tcpip.Error {
		for n < len(p) {
			c.out.Reset(p[n:])
			m, err := c.ep.Write(&c.out, tcpip.WriteOptions{})
			c.out.Reset(nil)
			n += int(m)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return n, c.fail("write", err)
}

// Close closes c. Operations under way and later operations fail with net.ErrClosed, but bytes that were written are
// still sent.
func (c *Conn) Close() error { return c.fail("close", c.close()) }

// CloseRead shuts down the reading side. Later Reads return the bytes that have already arrived, and then io.EOF.
func (c *Conn) CloseRead() error { return c.shutdown(tcpip.ShutdownRead) }

// CloseWrite shuts down the writing side, so that the peer's Reads end with io.EOF.
func (c *Conn) CloseWrite() error { return c.shutdown(tcpip.ShutdownWrite) }

func (c *Conn) shutdown(how tcpip.ShutdownFlags) error {
	if c.rd.isClosed() {
		return c.fail("close", net.ErrClosed)
	}
	return c.fail("close", errno(c.ep.Shutdown(how)))
}

// LocalAddr returns the local address.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the address of the peer.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline calls SetReadDeadline and SetWriteDeadline.
func (c *Conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// SetReadDeadline sets the time after which Reads, including those under way, fail with os.ErrDeadlineExceeded. The
// zero time means never.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.fail("set", c.rd.setDeadline(t)) }

// SetWriteDeadline sets the time after which Writes, including those under way, fail with os.ErrDeadlineExceeded. The
// zero time means never.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.fail("set", c.wr.setDeadline(t)) }

// SetNoDelay sets whether small writes are sent immediately. The default is true.
func (c *Conn) SetNoDelay(on bool) error {
	return c.option(func() error { c.ep.SocketOptions().SetDelayOption(!on); return nil })
}

// SetLinger sets how Close treats unsent bytes. If sec is zero, they are dropped, and the peer sees a reset. If sec is
// negative, which is the default, they are sent. Close never waits.
func (c *Conn) SetLinger(sec int) error {
	return c.option(func() error {
		c.ep.SocketOptions().SetLinger(tcpip.LingerOption{Enabled: sec >= 0, Timeout: time.Duration(sec) * time.Second})
		return nil
	})
}

// SetKeepAlive sets whether the stack probes the connection while it is idle.
func (c *Conn) SetKeepAlive(on bool) error {
	return c.option(func() error { c.ep.SocketOptions().SetKeepAlive(on); return nil })
}

// SetKeepAlivePeriod sets the idle time before the first probe, and the time between two probes.
func (c *Conn) SetKeepAlivePeriod(d time.Duration) error {
	return c.option(func() error {
		idle, interval := tcpip.KeepaliveIdleOption(d), tcpip.KeepaliveIntervalOption(d)
		if err := c.ep.SetSockOpt(&idle); err != nil {
			return errno(err)
		}
		return errno(c.ep.SetSockOpt(&interval))
	})
}

func (c *Conn) option(set func() error) error {
	if c.rd.isClosed() {
		return c.fail("set", net.ErrClosed)
	}
	return c.fail("set", set())
}

func (c *Conn) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}
