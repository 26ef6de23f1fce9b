package simulation

import (
	"syscall"

	"github.com/braidgo/braid/simulation/internal/draws"
	"github.com/braidgo/braid/simulation/internal/seeds"
)

// A conn is a TCP connection of a Node, see Node.Dial. Reads and writes are served in the order of their calls.
type conn struct {
	node          *Node
	peer          *conn
	link          *Link
	local, remote addr
	out           path
	held          *timer // the timer that calls timeOut

	in        []byte       // bytes that have arrived but have not been read
	ended     bool         // the peer has closed its direction
	unread    int          // the number of bytes sent that the peer has not read
	err       error        // the error of a broken connection
	closed    bool         // the connection is closed on this side, or not established yet
	unplugged bool         // a PowerOff has closed the connection
	id        int          // connections are numbered in the order of their creation
	boot      int          // the boot of the node that the connection belongs to
	draws     draws.Source // a separate random source for guests, so that the order of guests does not change the faults of other connections
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
		c.draws, peer.draws = draws.Source(draws.Mix(w.o.Seed^w.salt, uint64(c.id))), draws.Source(draws.Mix(w.o.Seed^w.salt, uint64(peer.id)))
		c.out.draws, peer.out.draws = &c.draws, &peer.draws
	}
	if from.name > to.name {
		c.out.way, peer.out.way = 1, 0
	}
	return c, peer
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
	if len(p) > 1 && c.out.draws.Below(16) == 0 {
		p = p[:1+c.out.draws.Below(len(p)-1)]
	}
	h, id := w.caller()
	e := event{kind: sent, host: h, task: id, of: &c.peer.node.host, n: len(p), data: draws.HashBytes(0, p)}
	if w.traced() {
		e.text = excerpt(p, traced)
	}
	if w.record.Tells() {
		e.text, e.message = excerpt(p, shown), &seeds.Message{From: c.node.name, Stream: c}
	}
	w.note(e)
	if c.out.draws.Chance(c.link.now().Reset) && w.record.Comes("reset") {
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
func (c *conn) receive(data []byte, m *seeds.Message) {
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

// sendFIN closes the direction to the peer once all bytes that were sent have arrived.
func (c *conn) sendFIN() {
	c.send(0, func() {
		if !c.probe() {
			c.peer.ended = true
			c.peer.read.wakeAll()
		}
	})
}

// probe reports whether c can no longer reach its peer, because the peer's node has no power, or has lost the connection through a
// PowerOff. In the first case c starts its timeout; in the second case the peer resets c.
func (c *conn) probe() bool {
	switch p := c.peer; {
	case p.node.off:
		p.node.unheard = append(without(p.node.unheard, p), p)
		c.repeat()
	case p.unplugged && p.err == nil:
		p.reset()
	default:
		return false
	}
	return true
}

// Write calls c.full before it waits for room in the peer's buffer. TCP would send probes during the wait. Here one probe is enough,
// because a later PowerOff of the peer sends a probe for a waiting Write.
func (c *conn) full() {
	if p := c.peer; !p.node.off && !p.unplugged {
		return
	}
	if g := c.node.world.calling(); g != nil {
		g.later(c, func() { c.probe() })
		return
	}
	c.probe()
}

// reset breaks the peer's end of the connection.
func (c *conn) reset() {
	c.send(0, func() { c.peer.broke(syscall.ECONNRESET) })
}

// broke makes all operations of c fail with err from now on. Unread bytes are lost.
func (c *conn) broke(err error) {
	if c.err != nil || c.closed {
		return
	}
	text := err.Error()
	c.node.world.note(event{kind: broken, host: &c.node.host, of: &c.peer.node.host, data: draws.HashString(0, text), text: text})
	c.err, c.in = err, nil
	c.read.wakeAll()
	c.write.wakeAll()
}

// sever breaks both ends of the connection at once.
func (c *conn) sever() {
	c.broke(syscall.ECONNRESET)
	c.peer.broke(syscall.ECONNRESET)
}

// repeat is called for a segment from c that cannot arrive now. TCP would repeat the segment, but would give up after holdTimeout.
func (c *conn) repeat() {
	if c.held == nil && c.err == nil && !c.closed {
		c.held = c.node.world.after(holdTimeout, nil, c.timeOut)
	}
}

// timeOut is called when a segment from c has been on hold for holdTimeout.
func (c *conn) timeOut() {
	c.held = nil
	c.broke(syscall.ETIMEDOUT)
	c.reset()
}

// abort closes c because its node or its listener ends, and resets the peer's end.
func (c *conn) abort() {
	if c.closed {
		return
	}
	broken := c.err != nil
	c.detach()
	if !broken {
		c.reset()
	}
}

// detach closes c on this side.
func (c *conn) detach() {
	c.closed, c.in = true, nil
	c.node.conns = without(c.node.conns, c)
	for _, s := range []*endpoint{&c.read, &c.write} {
		s.clear(c.node.world)
		s.wakeAll()
	}
}
