package simulation

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// Read copies bytes that have arrived to p. It suspends the caller until at least one byte has arrived.
func (c *conn) Read(p []byte) (int, error) {
	t := c.read.enqueue(c.node.world)
	if t == nil {
		return 0, c.fail("read", ErrForeign)
	}
	defer c.read.dequeue(t)
	for {
		switch {
		case c.closed:
			return 0, c.fail("read", net.ErrClosed)
		case c.read.expired:
			return 0, c.fail("read", os.ErrDeadlineExceeded)
		case c.noReads:
			return 0, io.EOF
		case c.err != nil:
			return 0, c.fail("read", c.err)
		case len(p) == 0:
			return 0, nil
		case !c.read.isFirst(t):
		case len(c.in) > 0:
			n := copy(p, c.in)
			c.consume(n)
			return n, nil
		case c.ended:
			return 0, io.EOF
		}
		t.wait()
	}
}

// Write writes all of p. Write suspends the caller while the peer has 64 KB of unread bytes. If Write fails, n bytes have been sent.
func (c *conn) Write(p []byte) (n int, err error) {
	t := c.write.enqueue(c.node.world)
	if t == nil {
		return 0, c.fail("write", ErrForeign)
	}
	defer c.write.dequeue(t)
	for {
		switch {
		case c.closed:
			return n, c.fail("write", net.ErrClosed)
		case c.write.expired:
			return n, c.fail("write", os.ErrDeadlineExceeded)
		case c.err != nil:
			return n, c.fail("write", c.err)
		case c.noWrites:
			return n, c.fail("write", syscall.EPIPE)
		case n == len(p):
			return n, nil
		case c.write.isFirst(t) && c.unread+len(c.pend) < window:
			n += c.transmit(p[n:min(len(p), n+min(maxSegment, window-c.unread-len(c.pend)))])
			continue
		}
		c.full()
		t.wait()
	}
}

// Close closes c. Pending and later operations fail with net.ErrClosed. The peer reads all bytes that were sent, and then io.EOF. If c has
// unread bytes, the peer fails with ECONNRESET instead, as over TCP.
func (c *conn) Close() error {
	return c.brief("close", func() error {
		lost := len(c.in) > 0 && c.err == nil
		c.detach()
		switch {
		case lost:
			c.reset()
		case c.err == nil && !c.noWrites:
			c.sendFIN()
		}
		return nil
	})
}

// brief calls f if c is open. The function f must not wait.
func (c *conn) brief(op string, f func() error) error {
	w := c.node.world
	guest, ok := w.beginCall()
	if guest {
		defer w.guests.endCall()
	}
	err := error(net.ErrClosed)
	switch {
	case !ok:
		err = ErrForeign
	case !c.closed:
		err = f()
	}
	if err != nil {
		return c.fail(op, err)
	}
	return nil
}

// CloseWrite closes the direction to the peer. The peer reads all bytes that were sent, and then io.EOF. The other direction remains open.
func (c *conn) CloseWrite() error {
	return c.brief("close", func() error {
		if c.err == nil && !c.noWrites {
			c.noWrites = true
			c.write.wakeAll()
			c.sendFIN()
		}
		return c.err
	})
}

// CloseRead closes the direction from the peer. Unread bytes are lost, and reads return io.EOF. Bytes that arrive later break both ends of
// the connection with ECONNRESET.
func (c *conn) CloseRead() error {
	return c.brief("close", func() error {
		if c.noReads = true; len(c.in) > 0 {
			c.consume(len(c.in))
		}
		c.read.wakeAll()
		return nil
	})
}

// LocalAddr returns the address of this end.
func (c *conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the address of the other end.
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline calls SetReadDeadline and SetWriteDeadline.
func (c *conn) SetDeadline(t time.Time) error { return c.deadline(t, &c.read, &c.write) }

// SetReadDeadline sets the time after which pending and later Reads fail with os.ErrDeadlineExceeded. The zero time means no deadline.
func (c *conn) SetReadDeadline(t time.Time) error { return c.deadline(t, &c.read) }

// SetWriteDeadline sets the time after which pending and later Writes fail with os.ErrDeadlineExceeded. The zero time means no deadline.
func (c *conn) SetWriteDeadline(t time.Time) error { return c.deadline(t, &c.write) }

func (c *conn) deadline(t time.Time, ends ...*endpoint) error {
	return c.brief("set", func() error {
		for _, s := range ends {
			if g := c.node.world.calling(); g != nil {
				g.deadline(c, s, t)
			} else {
				s.deadline(&c.node.host, t)
			}
		}
		return nil
	})
}

func (c *conn) fail(op string, err error) error {
	giveWay()
	c.node.late(c.boot)
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}
