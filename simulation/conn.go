package simulation

import (
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"

	"github.com/braidgo/braid/simulation/internal/draws"
	"github.com/braidgo/braid/simulation/internal/network"
	"github.com/braidgo/braid/simulation/internal/seeds"
)

// A conn is a TCP connection of a Node, see Node.Dial. Reads and writes are served in the order of their calls.
type conn struct {
	node          *Node
	peer          *conn
	local, remote addr
	out           network.Path
	held          *timer // the timer that calls timeOut

	in        []byte     // bytes that have arrived but have not been read
	ended     bool       // the peer has closed its direction
	unread    int        // the number of bytes sent that the peer has not read
	err       error      // the error of a broken connection
	closed    bool       // the connection is closed on this side, or not established yet
	loop      netip.Addr // the loopback address of the two ends, if they have one
	unix      bool
	path      string       // the path of the listener of a unix socket, at the end that it has accepted
	unplugged bool         // a PowerOff has closed the connection
	id        int          // connections are numbered in the order of their creation
	boot      int          // the boot of the node that the connection belongs to
	draws     draws.Source // a separate random source for guests, so that the order of guests does not change the faults of other connections
	later     []effect
	pend      []byte // bytes that were written, and that flush() will send
	unsent    int    // the number of bytes that the last flush could not send
	credit    int    // the number of bytes that were read since the last call of grant()
	noReads   bool   // CloseRead was called
	noWrites  bool   // CloseWrite was called
	read      endpoint
	write     endpoint
}

const (
	window     = 64 << 10 // the maximum number of bytes that are sent but not read
	maxSegment = 16 << 10
)

// newConns returns the two ends of a new connection, which is not established yet.
func newConns(from, to *Node, wire *network.Wire, local, port int) (c, peer *conn) {
	w := from.world
	w.links.conns += 2
	c = &conn{node: from, local: addr{from.name, local}, remote: addr{to.name, port}, closed: true, id: w.links.conns, boot: from.boots}
	peer = &conn{node: to, local: c.remote, remote: c.local, peer: c, closed: true, id: w.links.conns + 1}
	c.peer = peer
	c.out, peer.out = network.Path{Wire: wire, Way: 0, Draws: &w.dice.net}, network.Path{Wire: wire, Way: 1, Draws: &w.dice.net}
	if w.guests != nil {
		c.draws, peer.draws = w.dice.of(c.id), w.dice.of(peer.id)
		c.out.Draws, peer.out.Draws = &c.draws, &peer.draws
	}
	if from.name > to.name {
		c.out.Way, peer.out.Way = 1, 0
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

// An effect is what an operation of one end does to the other end. The effects of a task are performed at once. The effects of guests wait
// for the end of the window, where they are performed in the order of the connections, so that the order of the guests does not matter.
type effect struct {
	perform func(c *conn, e effect)
	size    int
	do      func()
}

// act performs an effect, now or at the end of the window.
func (c *conn) act(e effect) {
	w := c.node.world
	if !w.defers {
		e.perform(c, e)
		return
	}
	if len(c.later) == 0 {
		w.guests.changed = append(w.guests.changed, c)
	}
	c.later = append(c.later, e)
}

// performAll performs the effects that have waited.
func (c *conn) performAll() {
	later := c.later
	c.later = nil
	for _, e := range later {
		e.perform(c, e)
	}
}

// send sends a segment to the peer. When the segment arrives, do() is called.
func (c *conn) send(size int, do func()) {
	if !c.node.off {
		c.act(effect{(*conn).sendNow, size, do})
	}
}

func (c *conn) sendNow(e effect) { c.out.Send(c, e.size, e.do) }

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
