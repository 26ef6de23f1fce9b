package simulation

import (
	"io"
	"net"
	"syscall"
	"time"
)

// A Conn is the net.Conn of a Node: a TCP connection. Several tasks may call its methods concurrently; reads and writes are served in the
// order of their calls, and the bytes of two writes do not mix.
type Conn struct {
	node          *Node
	peer          *Conn
	link          *Link
	local, remote addr
	out           path
	held          *timer // calls timeOut

	in        []byte // has arrived, and was not read
	ended     bool   // the peer has ended its direction
	unread    int    // sent, and not read by the peer
	err       error  // the reason why the connection is broken
	closed    bool   // closed on this side, or not established yet
	unplugged bool   // closed by a PowerOff
	id        int    // a number in the order of creation
	boot      int    // the node's boot that it belongs to
	draws     source // a separate source for guests, so that their order does not move the faults of other connections
	later     []func()
	pend      []byte // written in this window
	credit    int    // read in this window
	noReads   bool   // CloseRead
	noWrites  bool   // CloseWrite
	read      endpoint
	write     endpoint
}

const (
	window     = 64 << 10 // bytes that were sent and not read
	maxSegment = 16 << 10
)

// connection returns the two ends of a connection that is not established yet.
func connection(from, to *Node, link *Link, port int) (c, peer *Conn) {
	w := from.world
	w.conns += 2
	c = &Conn{node: from, link: link, local: addr{from.name, from.freePort()}, remote: addr{to.name, port}, closed: true, id: w.conns, boot: from.files.boot}
	peer = &Conn{node: to, link: link, local: c.remote, remote: c.local, peer: c, closed: true, id: w.conns + 1}
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

// Read reads the bytes that have arrived into p, and suspends the caller while there are none.
func (c *Conn) Read(p []byte) (int, error) {
	t := c.read.join(c.node.world)
	if t == nil {
		return 0, c.fail("read", ErrForeign)
	}
	defer c.read.leave(t)
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
		case !c.read.first(t):
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

// send calls do at the peer's end of the link.
func (c *Conn) send(size int, do func()) {
	if c.node.off {
		return
	}
	if g := c.node.world.calling(); g != nil {
		g.later(c, func() { c.out.send(c, size, do) })
		return
	}
	c.out.send(c, size, do)
}

// consume takes n bytes off, which makes room for the peer.
func (c *Conn) consume(n int) {
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

// room lets the peer send n more bytes. A segment carries the news only if a Write of the peer waits for it.
func (c *Conn) room(n int) {
	if len(c.peer.write.line) == 0 {
		c.peer.unread -= n
		return
	}
	c.out.send(c.peer, 0, func() {
		c.peer.unread -= n
		c.peer.write.wakeFirst()
	})
}

// Write writes all of p, and suspends the caller while the peer has 64 KB to read. If it fails, n bytes have been sent.
func (c *Conn) Write(p []byte) (n int, err error) {
	t := c.write.join(c.node.world)
	if t == nil {
		return 0, c.fail("write", ErrForeign)
	}
	defer c.write.leave(t)
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
		case c.write.first(t) && c.unread+len(c.pend) < window:
			n += c.transmit(p[n:min(len(p), n+min(maxSegment, window-c.unread-len(c.pend)))])
			continue
		}
		c.full()
		t.wait()
	}
}

// transmit sends the beginning of p, mostly all of it, and returns its length. The network may break the connection instead.
func (c *Conn) transmit(p []byte) int {
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

// flush sends what guests have written in a window, as one stretch of bytes.
func (c *Conn) flush() {
	p := c.pend
	c.pend = nil
	for len(p) > 0 && c.err == nil {
		p = p[c.transmit(p[:min(len(p), maxSegment)]):]
	}
}

// receive handles the arrival of a segment.
func (c *Conn) receive(data []byte, m *message) {
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

// Close closes c. Operations under way, and all later operations, fail with net.ErrClosed. The peer reads all that was sent, and then
// io.EOF. If c has bytes to read, the peer fails with ECONNRESET instead, as over TCP.
func (c *Conn) Close() error {
	return c.brief("close", func() error {
		lost := len(c.in) > 0 && c.err == nil
		c.forget()
		switch {
		case lost:
			c.reset()
		case c.err == nil && !c.noWrites:
			c.end()
		}
		return nil
	})
}

// brief calls f, which does not wait, if c is open.
func (c *Conn) brief(op string, f func() error) error {
	w := c.node.world
	guest, ok := w.begin()
	if guest {
		defer w.guests.exit()
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

// CloseWrite ends the direction to the peer: it reads all that was sent, and then io.EOF. The other direction goes on.
func (c *Conn) CloseWrite() error {
	return c.brief("close", func() error {
		if c.err == nil && !c.noWrites {
			c.noWrites = true
			c.write.wakeAll()
			c.end()
		}
		return c.err
	})
}

// CloseRead ends the direction from the peer: reads return io.EOF, and bytes that arrive break the connection, both ends, with
// ECONNRESET. Bytes that have arrived and were not read are lost.
func (c *Conn) CloseRead() error {
	return c.brief("close", func() error {
		if c.noReads = true; len(c.in) > 0 {
			c.consume(len(c.in))
		}
		c.read.wakeAll()
		return nil
	})
}

// LocalAddr returns the address of this end.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the address of the other end.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline is SetReadDeadline and SetWriteDeadline.
func (c *Conn) SetDeadline(t time.Time) error { return c.deadline(t, &c.read, &c.write) }

// SetReadDeadline sets when Reads fail with os.ErrDeadlineExceeded, also Reads under way. The zero time means never. The deadline counts by
// the node's clock, see suspend.Now. A time that was made from time.Now, and so has a monotonic reading, counts as the duration that it is
// ahead, rounded up to a tenth of a second, or to a second if it is longer: stock crypto/tls makes such deadlines.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.deadline(t, &c.read) }

// SetWriteDeadline sets when Writes fail with os.ErrDeadlineExceeded, also Writes under way. The zero time means never.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.deadline(t, &c.write) }

func (c *Conn) deadline(t time.Time, ends ...*endpoint) error {
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

func (c *Conn) fail(op string, err error) error {
	giveWay()
	c.node.late(c.boot)
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}
