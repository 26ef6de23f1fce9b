package simulation

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/braidgo/braid/simulation/internal/draws"
	"github.com/braidgo/braid/simulation/internal/seeds"
)

// This file is what a program calls on a connection, and the way of the bytes from Write to Read. How a connection breaks is in ends.go.

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
			n += c.transmit(p[n:min(len(p), n+window-c.unread-len(c.pend))])
			continue
		}
		c.full()
		t.wait()
	}
}

// transmit sends p. It returns the number of bytes sent, which is less than len(p) if a fault has broken the connection.
func (c *conn) transmit(p []byte) int {
	if c.pend = append(c.pend, p...); len(c.pend) == len(p) {
		c.act(effect{perform: (*conn).flush})
	}
	if c.err != nil {
		return len(p) - c.unsent
	}
	return len(p)
}

// flush sends all bytes in c.pend.
func (c *conn) flush(effect) {
	p := c.pend
	c.pend = nil
	for len(p) > 0 && c.err == nil {
		n := min(len(p), maxSegment)
		if n > 1 && c.out.Draws.Below(16) == 0 {
			n = 1 + c.out.Draws.Below(n-1)
		}
		c.transmitSegment(p[:n:n])
		p = p[n:]
	}
	c.unsent = len(p)
}

// transmitSegment sends a segment, which it keeps. A fault may break the connection instead.
func (c *conn) transmitSegment(data []byte) {
	w := c.node.world
	h, id := w.caller()
	e := event{kind: sent, host: h, task: id, of: &c.peer.node.place, n: len(data), data: draws.HashBytes(0, data)}
	if w.o.traced() {
		e.text = excerpt(data, traced)
	}
	if w.record.Tells() {
		e.text, e.message = excerpt(data, shown), &seeds.Message{From: c.node.name, Stream: c}
	}
	w.note(e)
	if c.out.Draws.Chance(c.out.Wire.Faults.Reset) && w.record.Comes("reset") {
		c.sever()
		return
	}
	c.unread += len(data)
	m := e.message
	c.send(len(data), func() { c.peer.receive(data, m) })
}

// receive handles the arrival of a segment.
func (c *conn) receive(data []byte, m *seeds.Message) {
	w := c.node.world
	w.note(event{kind: arrived, of: &c.node.place, n: len(data), message: m})
	switch {
	case c.node.off:
		c.peer.probe()
	case c.closed || c.noReads || c.node.dead:
		if c.err == nil {
			c.broke(syscall.ECONNRESET)
			c.reset()
		}
	case c.err == nil:
		if c.in == nil {
			c.in = data
		} else {
			c.in = append(c.in, data...)
		}
		c.read.wakeFirst()
	}
}

// consume removes n bytes from c.in, and lets the peer send n more bytes.
func (c *conn) consume(n int) {
	if c.in = c.in[n:]; len(c.in) == 0 {
		c.in = nil
	}
	if c.credit += n; c.credit == n {
		c.act(effect{perform: (*conn).grant})
	}
}

// grant lets the peer send as many bytes as were read.
func (c *conn) grant(effect) {
	n := c.credit
	c.credit = 0
	c.room(n)
}

// room lets the peer send n more bytes. If a Write of the peer is waiting, a segment informs the peer. Otherwise the peer's state changes
// at once.
func (c *conn) room(n int) {
	if len(c.peer.write.line) == 0 {
		c.peer.unread -= n
		return
	}
	c.out.Send(c.peer, 0, func() {
		c.peer.unread -= n
		c.peer.write.wakeFirst()
	})
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

// brief calls f if c is open. The function f must not wait. The call returns although the run is over, because its caller may hold locks.
func (c *conn) brief(op string, f func() error) error {
	e := c.node.world.entrance()
	err := e.refused()
	if e.beginCall() {
		defer e.endCall()
		if err = net.ErrClosed; !c.closed {
			err = f()
		}
	}
	if err != nil {
		return c.opError(op, err)
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
			if c.node.world.defers {
				c.deadlineOfGuest(s, t)
			} else {
				s.deadline(&c.node.host, t)
			}
		}
		return nil
	})
}

// deadlineOfGuest sets a deadline of c to t, a time of package time's clock.
func (c *conn) deadlineOfGuest(s *endpoint, t time.Time) {
	g := c.node.world.guests
	s.expired = false
	s.set++ // cancels a deadline that was set in this window
	s.clear(g.w)
	if t.IsZero() {
		return
	}
	if time.Until(t) <= 0 {
		s.expire()
		return
	}
	at, set := t.Sub(g.begun), s.set
	c.act(effect{perform: func(c *conn, _ effect) {
		if set == s.set && !c.closed {
			s.timer = g.w.clock.after(at-g.w.clock.now, nil, s.expire)
		}
	}})
}
