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
// goroutines; a caller that has to wait suspends. Concurrent Writes do not mix. Deadlines and Close act at once on
// operations that wait. A task whose operations never have to wait lets others run after 64 of them.
//
// Errors are as in package net: an *net.OpError around the errno, as syscall.ECONNRESET, around os.ErrDeadlineExceeded
// or around net.ErrClosed.
type Conn struct {
	endpoint
	local, remote net.Addr
	in            tcpip.SliceWriter // the Read with the turn uses it
	out           bytes.Reader      // the Write with the turn uses it
}

// An endpoint is an endpoint of gVisor's stack, and its waits.
type endpoint struct {
	stack  *Stack
	ep     tcpip.Endpoint
	queue  *waiter.Queue
	rd, wr side
}

// begin registers e for events, and for the end of the Stack. If the Stack has ended, e is over.
func (e *endpoint) begin(s *Stack, ep tcpip.Endpoint, queue *waiter.Queue) error {
	e.stack, e.ep, e.queue = s, ep, queue
	const ends = waiter.EventErr | waiter.EventHUp | waiter.EventRdHUp
	e.rd.entry.Init(&e.rd, waiter.ReadableEvents|ends)
	e.wr.entry.Init(&e.wr, waiter.WritableEvents|ends)
	queue.EventRegister(&e.rd.entry)
	queue.EventRegister(&e.wr.entry)
	if !s.add(e) {
		e.end()
		return net.ErrClosed
	}
	return nil
}

// end is close, for a Stack that has forgotten e.
func (e *endpoint) end() error {
	if !e.rd.close() {
		return net.ErrClosed
	}
	e.wr.close()
	e.queue.EventUnregister(&e.rd.entry)
	e.queue.EventUnregister(&e.wr.entry)
	e.ep.Close()
	return nil
}

// close ends operations, those under way included. Of several calls the first returns nil.
func (e *endpoint) close() error {
	e.stack.forget(e)
	return e.end()
}

// connected completes a Conn whose endpoint is connected.
func (c *Conn) connected() {
	local, _ := c.ep.GetLocalAddress()
	remote, _ := c.ep.GetRemoteAddress()
	c.local, c.remote = tcpAddr(local), tcpAddr(remote)
	if idle := c.stack.keepAlive; idle > 0 {
		_ = c.SetKeepAlivePeriod(idle)
		_ = c.SetKeepAlive(true)
	}
}

// Read reads the available bytes into p, and suspends the caller while there are none.
func (c *Conn) Read(p []byte) (int, error) { return c.ReadContext(background, p) }

// Write writes all of p, and suspends the caller while there is no room. If it fails, n bytes have been written.
func (c *Conn) Write(p []byte) (n int, err error) { return c.WriteContext(background, p) }

// ReadContext is Read, which fails with the error of the cancellation once ctx is done, or if it is done already. No byte is lost.
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

// WriteContext is Write, which fails with the error of the cancellation once ctx is done, or if it is done already.
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

// Close closes c. Operations under way and later operations fail with net.ErrClosed, but written bytes are still sent.
func (c *Conn) Close() error { return c.fail("close", c.close()) }

// CloseRead shuts the reading side down: Reads of bytes still to come return io.EOF.
func (c *Conn) CloseRead() error { return c.shutdown(tcpip.ShutdownRead) }

// CloseWrite shuts the writing side down: the peer reads io.EOF.
func (c *Conn) CloseWrite() error { return c.shutdown(tcpip.ShutdownWrite) }

func (c *Conn) shutdown(how tcpip.ShutdownFlags) error {
	if c.rd.isClosed() {
		return c.fail("close", net.ErrClosed)
	}
	return c.fail("close", errno(c.ep.Shutdown(how)))
}

// LocalAddr returns the address of this end.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the address of the other end.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline is SetReadDeadline and SetWriteDeadline.
func (c *Conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// SetReadDeadline sets when Reads, also those under way, fail with os.ErrDeadlineExceeded; zero: never.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.fail("set", c.rd.setDeadline(t)) }

// SetWriteDeadline sets when Writes, also those under way, fail with os.ErrDeadlineExceeded; zero: never.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.fail("set", c.wr.setDeadline(t)) }

// SetNoDelay says whether small writes are sent at once. That is the default.
func (c *Conn) SetNoDelay(on bool) error {
	return c.option(func() error { c.ep.SocketOptions().SetDelayOption(!on); return nil })
}

// SetLinger says how Close treats unsent bytes: with sec zero it is dropped, and the peer sees a reset. A negative sec is
// the default, to send it. Close never waits.
func (c *Conn) SetLinger(sec int) error {
	return c.option(func() error {
		c.ep.SocketOptions().SetLinger(tcpip.LingerOption{Enabled: sec >= 0, Timeout: time.Duration(sec) * time.Second})
		return nil
	})
}

// SetKeepAlive says whether the connection is probed while it is idle.
func (c *Conn) SetKeepAlive(on bool) error {
	return c.option(func() error { c.ep.SocketOptions().SetKeepAlive(on); return nil })
}

// SetKeepAlivePeriod sets after how much idle time the connection is probed, and how often.
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
