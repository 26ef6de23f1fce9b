package simulation

import "syscall"

// This file contains the code that ends connections.

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
	c.node.world.note(event{kind: broken, host: &c.node.host, of: &c.peer.node.host, data: hashString(0, text), text: text})
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

// without removes the first x from a slice, in place.
func without[T comparable](all []T, x T) []T {
	for i := range all {
		if all[i] == x {
			var none T
			copy(all[i:], all[i+1:])
			all[len(all)-1] = none
			return all[:len(all)-1]
		}
	}
	return all
}
