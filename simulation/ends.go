package simulation

import (
	"net"
	"syscall"
	"time"

	"github.com/braidgo/braid/simulation/internal/draws"
	"github.com/braidgo/braid/simulation/internal/network"
)

// fail returns the error of an operation that may wait. It ends a guest of a crashed node that has failed often.
func (c *conn) fail(op string, err error) error {
	c.node.late(c.boot)
	return c.opError(op, err)
}

func (c *conn) opError(op string, err error) error {
	giveWay()
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
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
		p.node.unheard = append(without(p.node.unheard, connection(p)), p)
		c.Waits()
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
	c.act(effect{perform: func(c *conn, _ effect) { c.probe() }})
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
	c.node.world.note(event{kind: broken, host: &c.node.place, of: &c.peer.node.place, data: draws.HashString(0, text), text: text})
	c.err, c.in = err, nil
	c.read.wakeAll()
	c.write.wakeAll()
}

// cut breaks the connection if it uses this wire.
func (c *conn) cut(wire *network.Wire) {
	if c.out.Wire == wire {
		c.sever()
	}
}

// sever breaks both ends of the connection at once.
func (c *conn) sever() {
	c.broke(syscall.ECONNRESET)
	c.peer.broke(syscall.ECONNRESET)
}

const holdTimeout = 15 * time.Minute

// Waits implements network.Sender. It is called for a segment from c that cannot arrive now. TCP would repeat the segment, but would give
// up after holdTimeout.
func (c *conn) Waits() {
	if c.held == nil && c.err == nil && !c.closed {
		c.held = c.node.world.clock.after(holdTimeout, nil, c.timeOut)
	}
}

// Goes implements network.Sender.
func (c *conn) Goes() {
	c.node.world.clock.discard(c.held)
	c.held = nil
}

// timeOut is called when a segment from c has been on hold for holdTimeout.
func (c *conn) timeOut() {
	c.held = nil
	c.broke(syscall.ETIMEDOUT)
	c.reset()
}

// lose ends c because its node crashes. After a PowerOff, the peer gets no reset.
func (c *conn) lose(powerOff bool) {
	if c.unplugged = powerOff; powerOff {
		c.Goes()
		if len(c.peer.write.line) > 0 {
			c.peer.probe()
		}
	}
	c.abort()
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
	c.node.conns = without(c.node.conns, connection(c))
	for _, s := range []*endpoint{&c.read, &c.write} {
		s.clear(c.node.world)
		s.wakeAll()
	}
}
