package simulation

import (
	"io"
	"net"
	"syscall"
	"time"
)

// A conn is a TCP connection of a Node, see Node.Dial. Reads and writes are served in the order of their calls.
type conn struct {
	node          *Node
	peer          *conn
	link          *Link
	local, remote addr
	out           path
	held          *timer // the timer that calls timeOut

	in        []byte // bytes that have arrived but have not been read
	ended     bool   // the peer has closed its direction
	unread    int    // the number of bytes sent that the peer has not read
	err       error  // the error of a broken connection
	closed    bool   // the connection is closed on this side, or not established yet
	unplugged bool   // a PowerOff has closed the connection
	id        int    // connections are numbered in the order of their creation
	boot      int    // the boot of the node that the connection belongs to
	draws     source // a separate random source for guests, so that the order of guests does not change the faults of other connections
	later     []func()
	pend      []byte // bytes that guests have written, and that flush() will send
	credit    int    // the number of bytes that guests have read since the last call of room()
	noReads   bool   // CloseRead was called
	noWrites  bool   // CloseWrite was called
	read      endpoint
	write     endpoint
}

const (
	window     = 64 << 10 // the maximum number of bytes that are sent but not read
	maxSegment = 16 << 10
)

// connection returns the two ends of a new connection, which is not established yet.
func connection(from, to *Node, link *Link, port int) (c, peer *conn) {
	w := from.world
	w.conns += 2
	c = &conn{node: from, link: link, local: addr{from.name, from.freePort()}, remote: addr{to.name, port}, closed: true, id: w.conns, boot: from.files.boot}
	peer = &conn{node: to, link: link, local: c.remote, remote: c.local, peer: c, closed: true, id: w.conns + 1}
	c.peer = peer
	c.out, peer.out = path{link: link, way: 0, draws: &w.net}, path{link: link, way: 1, draws: &w.net}
	if w.guests != nil {
		c.draws, peer.draws = source(mix(w.o.Seed^w.salt, uint64(c.id))), source(mix(w.o.Seed^w.salt, uint64(peer.id)))
		c.out.draws, peer.out.draws = &c.draws, &peer.draws
	}
	if from.name > to.name {
		c.out.way, peer.out.way = 1, 0
	}
	return c, peer
}

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
			return 0, c.fail("read", errDeadline)
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

// send sends a segment to the peer. When the segment arrives, do() is called.
func (c *conn) send(size int, do func()) {
	if c.node.off {
		return
	}
	if g := c.node.world.calling(); g != nil {
		g.later(c, func() { c.out.send(c, size, do) })
		return
	}
	c.out.send(c, size, do)
}

// consume removes n bytes from c.in, and lets the peer send n more bytes.
func (c *conn) consume(n int) {
	if c.in = c.in[n:]; len(c.in) == 0 {
		c.in = nil
	}
	if g := c.node.world.calling(); g != nil {
		if c.credit == 0 {
			g.later(c, func() { n := c.credit; c.credit = 0; c.room(n) })
		}
		c.credit += n
		return
	}
	c.room(n)
}

// room lets the peer send n more bytes. If a Write of the peer is waiting, a segment informs the peer. Otherwise the peer's state changes
// at once.
func (c *conn) room(n int) {
	if len(c.peer.write.line) == 0 {
		c.peer.unread -= n
		return
	}
	c.out.send(c.peer, 0, func() {
		c.peer.unread -= n
		c.peer.write.wakeFirst()
	})
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
			return n, c.fail("write", errDeadline)
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

// transmit sends a prefix of p, usually all of p, and returns the length of the prefix. A fault may break the connection instead.
func (c *conn) transmit(p []byte) int {
	w := c.node.world
	if g := w.calling(); g != nil {
		if len(c.pend) == 0 {
			g.later(c, c.flush)
		}
		c.pend = append(c.pend, p...)
		return len(p)
	}
	if len(p) > 1 && c.out.draws.below(16) == 0 {
		p = p[:1+c.out.draws.below(len(p)-1)]
	}
	h, id := w.caller()
	e := event{kind: sent, host: h, task: id, of: &c.peer.node.host, n: len(p), data: hashBytes(0, p)}
	if w.traced() {
		e.text = excerpt(p, traced)
	}
	if w.telling() {
		e.text, e.message = excerpt(p, shown), &message{by: c}
	}
	w.note(e)
	if c.out.draws.chance(c.link.now().Reset) && w.comes("reset") {
		c.sever()
		return len(p)
	}
	data := append([]byte(nil), p...)
	c.unread += len(data)
	m := e.message
	c.send(len(data), func() { c.peer.receive(data, m) })
	return len(data)
}

// flush sends all bytes in c.pend, which guests have written.
func (c *conn) flush() {
	p := c.pend
	c.pend = nil
	for len(p) > 0 && c.err == nil {
		p = p[c.transmit(p[:min(len(p), maxSegment)]):]
	}
}

// receive handles the arrival of a segment.
func (c *conn) receive(data []byte, m *message) {
	w := c.node.world
	w.note(event{kind: arrived, of: &c.node.host, n: len(data), message: m})
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
