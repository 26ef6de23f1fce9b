package simulation

import (
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/braidgo/braid/simulation/internal/draws"
	"github.com/braidgo/braid/simulation/internal/seeds"
)

// A packetConn is a UDP socket of a Node, see Node.ListenPacket.
type packetConn struct {
	node   *Node
	boot   int // the boot of the node that the socket belongs to
	local  bool
	own    bool // the socket is bound to the node's own address, see binding
	addr   udpAddr
	peer   udpAddr // a connected socket receives only from this address
	in     []datagram
	size   int // the total length of the unread datagrams
	read   endpoint
	closed bool
	draws  draws.Source
}

// A datagram is a packet that has arrived.
type datagram struct {
	from udpAddr
	node *Node      // the node that has sent it
	loop netip.Addr // the loopback address that it was sent to, if it was
	data []byte
}

type udpAddr struct{ addr }

func (udpAddr) Network() string { return "udp" }

const maxDatagram = 65507 // bytes, over IPv4

// ListenPacket opens a UDP socket at an address of the form ":port", as Listen does. The network must be udp, udp4 or udp6. To send, pass
// WriteTo an address from ReadFrom or UDPAddr. Several tasks may call the socket's methods concurrently.
//
// Each datagram has its own latency, and may overtake other datagrams. Datagrams may be lost or doubled, see Faults. A datagram is also lost
// if the link is on hold or cut, if the receiving node has no such socket, or if the socket has 64 KB of unread datagrams. No error reports
// a loss.
func (n *Node) ListenPacket(network, address string) (net.PacketConn, error) {
	c, err := n.listenPacket(network, address)
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: network, Addr: c.addr, Err: err}
	}
	return c, nil
}

func (n *Node) listenPacket(network, address string) (*packetConn, error) {
	at, local, err := n.bind("udp", network, address, &n.udp)
	c := &packetConn{node: n, boot: n.boots, local: local, own: at.own, addr: udpAddr{addr{n.name, at.port}}}
	if err != nil {
		return c, err
	}
	w := n.world
	h, id := w.caller()
	w.note(event{kind: listens, host: h, task: id, of: &n.place, data: uint64(at.port), text: "udp"})
	n.used = true
	w.links.conns++
	c.draws = w.dice.of(w.links.conns)
	n.udp.open(at, c)
	return c, nil
}

// UDPAddr returns the address of a socket for WriteTo, from a string of the form "name:port". Package net resolves the names of nodes only for
// guests, and only at levels C and D, see Report.Level.
func UDPAddr(address string) (net.Addr, error) {
	name, port, err := split(address)
	if err != nil {
		return nil, err
	}
	return udpAddr{addr{name, port}}, nil
}

// ReadFrom suspends the caller until there is a datagram, and copies the datagram to p. If the datagram is longer than p, the rest is lost.
func (c *packetConn) ReadFrom(p []byte) (int, net.Addr, error) {
	n, d, err := c.next(p)
	if err != nil {
		return 0, nil, err
	}
	return n, d.from, nil
}

// next copies the next datagram to p, and returns the number of bytes and the datagram.
func (c *packetConn) next(p []byte) (int, datagram, error) {
	t := c.read.enqueue(c.node.world)
	if t == nil {
		return 0, datagram{}, c.fail("read", ErrForeign)
	}
	defer c.read.dequeue(t)
	for {
		switch {
		case c.closed:
			c.node.late(c.boot)
			return 0, datagram{}, c.fail("read", net.ErrClosed)
		case c.read.expired:
			return 0, datagram{}, c.fail("read", os.ErrDeadlineExceeded)
		case c.read.isFirst(t) && len(c.in) > 0:
			d := c.in[0]
			c.in[0] = datagram{}
			c.in, c.size = c.in[1:], c.size-len(d.data)
			return copy(p, d.data), d, nil
		}
		t.wait()
	}
}

// WriteTo sends p without waiting. It uses only to.String(), which must have the form "name:port". If no node has this name, WriteTo fails,
// as a DNS lookup would.
func (c *packetConn) WriteTo(p []byte, to net.Addr) (int, error) {
	name, port, err := split(to.String())
	if err == nil {
		err = c.brief(func() error {
			to, loop := c.node.reach(name)
			if to == nil {
				return &net.DNSError{Err: "no such node", Name: name, IsNotFound: true}
			}
			return c.send(p, to, port, loop)
		})
	}
	if err != nil {
		return 0, c.fail("write", err)
	}
	return len(p), nil
}

func (c *packetConn) send(p []byte, to *Node, port int, loop netip.Addr) error {
	w, name := c.node.world, to.name
	if len(p) > maxDatagram {
		return syscall.EMSGSIZE
	}
	h, id := w.caller()
	m, e := (*seeds.Message)(nil), event{kind: sent, host: h, task: id, of: &to.place, n: len(p), data: draws.HashBytes(uint64(port), p)}
	if w.o.traced() {
		e.text = excerpt(p, traced)
	}
	if w.record.Tells() {
		m = &seeds.Message{From: c.node.name}
		e.text, e.message = excerpt(p, shown), m
	}
	w.note(e)
	l, way := w.links.between(w, c.node.name, name), 0
	if c.node.name > name {
		way = 1
	}
	f := l.wire.Faults
	if l.wire.Blocks(way) || c.draws.Chance(f.Loss) && w.record.Comes("loss") {
		return nil
	}
	copies := 1
	if c.draws.Chance(f.Double) && w.record.Comes("double") {
		copies = 2
	}
	d := datagram{c.addr, c.node, loop, append([]byte(nil), p...)}
	for range copies {
		l.wire.SendAlone(way, len(p), &c.draws, func() { to.receiveDatagram(port, d, m) })
	}
	return nil
}

// receiveDatagram handles the arrival of a datagram.
func (n *Node) receiveDatagram(port int, d datagram, m *seeds.Message) {
	c, _ := n.udp.find(port, d.loop.IsValid()).(*packetConn)
	if n.dead || c == nil || c.local && !d.loop.IsValid() || c.size+len(d.data) > window || c.peer.port != 0 && c.peer != d.from {
		return
	}
	n.world.note(event{kind: arrived, of: &n.place, n: len(d.data), message: m})
	c.in, c.size = append(c.in, d), c.size+len(d.data)
	c.read.wakeFirst()
}

// Close closes c. Pending and later ReadFroms fail with net.ErrClosed.
func (c *packetConn) Close() error {
	if err := c.brief(func() error { c.shut(); return nil }); err != nil {
		return c.fail("close", err)
	}
	return nil
}

func (c *packetConn) shut() {
	c.closed, c.in = true, nil
	c.node.udp.close(binding{c.addr.port, c.own}, c)
	c.read.clear(c.node.world)
	c.read.wakeAll()
}

func (c *packetConn) isLocal() bool { return c.local }

// brief calls f on the World if c is open.
func (c *packetConn) brief(f func() error) error {
	return c.node.world.brief(func() error {
		if c.closed {
			return net.ErrClosed
		}
		return f()
	})
}

// LocalAddr returns the address of c.
func (c *packetConn) LocalAddr() net.Addr { return c.addr }

// SetDeadline calls SetReadDeadline, because a WriteTo does not wait.
func (c *packetConn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetReadDeadline sets the time after which pending and later ReadFroms fail with os.ErrDeadlineExceeded. The zero time means no deadline.
func (c *packetConn) SetReadDeadline(t time.Time) error {
	if err := c.brief(func() error { c.read.deadline(&c.node.host, t); return nil }); err != nil {
		return c.fail("set", err)
	}
	return nil
}

// SetWriteDeadline does nothing, because a WriteTo does not wait.
func (c *packetConn) SetWriteDeadline(time.Time) error { return nil }

func (c *packetConn) fail(op string, err error) error {
	giveWay()
	return &net.OpError{Op: op, Net: "udp", Source: c.addr, Err: err}
}
