package simulation

import (
	"net/netip"

	"github.com/braidgo/braid/simulation/internal/draws"
	"github.com/braidgo/braid/simulation/internal/network"
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
