package simulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"github.com/braidgo/braid/simulation/internal/chance"
	"github.com/braidgo/braid/simulation/internal/network"
	"github.com/braidgo/braid/suspend"
)

// This file serves package net with the overlay: Listen, Dial and look-ups of a goroutine that belongs to a node go to the network of this
// node. Package net itself makes the *net.TCPConn and so on, and adds the *net.OpError; see internal/edited/_net/world.go.

func init() {
	chance.Net.Here = chance.Node
	chance.Net.Dial = dialStock
	chance.Net.Listen = listenStock
	chance.Net.Packet = packetStock
	chance.Net.Lookup = lookupStock
	chance.Net.Names = namesStock
	chance.Net.Addr = addrStock
}

var errNoHost = errors.New("simulation: main has no network: use Node.Start, and package net there")

func dialStock(ctx context.Context, network string, local, remote net.Addr) (net.Conn, error) {
	h := hostHere()
	if h == nil {
		return nil, errNoHost
	}
	if network == "unixpacket" {
		return nil, syscall.EPROTONOSUPPORT
	}
	var c *conn
	err := error(net.ErrClosed)
	h.task(ctx, func() { c, err = h.n.dialStock(ctx, local, remote) })
	if err != nil {
		return nil, cmp.Or(ctx.Err(), err)
	}
	return stockConn{c}, nil
}

// dialStock dials an address of package net. It notes the event with names, like Dial.
func (n *Node) dialStock(ctx context.Context, local, remote net.Addr) (c *conn, err error) {
	if n.dead || n.world.over {
		return nil, net.ErrClosed
	}
	if a, ok := remote.(*net.UnixAddr); ok {
		c, err = n.dialUnix(ctx, a.Name)
		n.noteDial(a.Name, err)
		return c, err
	}
	a := addrPortOf(remote)
	to, loop := n.reach(a.Addr().String())
	if to == nil {
		err = suspend.Sleep(ctx, unreachable)
		err = cmp.Or(err, error(syscall.EHOSTUNREACH))
		n.noteDial(a.String(), err)
		return nil, err
	}
	d := &pendingDial{loop: loop}
	text := net.JoinHostPort(to.name, strconv.Itoa(int(a.Port())))
	if d.port, err = n.localPort(&n.tcp, local); err == nil {
		n.noteDialled(to, int(a.Port()), strconv.Itoa(int(a.Port())))
		c, err = n.connect(ctx, d, to, int(a.Port()), n.world.Link(n.name, to.name))
	}
	n.noteDial(text, err)
	return c, err
}

// localPort returns the port of a local address that a program has chosen, or 0.
func (n *Node) localPort(s *sockets, local net.Addr) (port int, err error) {
	if local == nil {
		return 0, nil
	}
	a := addrPortOf(local)
	to, loop := n.reach(a.Addr().String())
	switch {
	case to != n:
		return 0, syscall.EADDRNOTAVAIL
	case a.Port() != 0 && s.taken(binding{int(a.Port()), !loop.IsValid()}, loop.IsValid()):
		return 0, syscall.EADDRINUSE
	}
	return int(a.Port()), nil
}

func listenStock(network string, local net.Addr) (net.Listener, error) {
	h := hostHere()
	if h == nil {
		return nil, errNoHost
	}
	if network == "unixpacket" {
		return nil, syscall.EPROTONOSUPPORT
	}
	var l *listener
	at, err := local, error(net.ErrClosed)
	h.call(context.Background(), func(done func()) {
		defer done()
		if a, ok := local.(*net.UnixAddr); ok {
			l, err = h.n.listenUnix(a.Name)
			return
		}
		a := addrPortOf(local)
		if l, err = h.n.listen("tcp", a.String()); err == nil {
			at = net.TCPAddrFromAddrPort(netip.AddrPortFrom(a.Addr(), uint16(l.addr.port)))
		}
	})
	if err != nil {
		return nil, err
	}
	return stockListener{l, at}, nil
}

func packetStock(network string, local, remote net.Addr) (net.PacketConn, error) {
	h := hostHere()
	if h == nil {
		return nil, errNoHost
	}
	if _, ok := cmp.Or(local, remote).(*net.UDPAddr); !ok {
		return nil, syscall.EPROTONOSUPPORT
	}
	var c *packetConn
	at, err := netip.AddrPort{}, error(net.ErrClosed)
	h.call(context.Background(), func(done func()) {
		defer done()
		c, at, err = h.n.packetStock(local, remote)
	})
	if err != nil {
		return nil, err
	}
	return stockPacket{c, net.UDPAddrFromAddrPort(at)}, nil
}

// packetStock opens a UDP socket at a local address, which may be nil. If there is a remote address, the socket is connected.
func (n *Node) packetStock(local, remote net.Addr) (*packetConn, netip.AddrPort, error) {
	at := netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
	if local != nil {
		at = addrPortOf(local)
	}
	c, err := n.listenPacket("udp", at.String())
	if err == nil && remote != nil {
		to := addrPortOf(remote)
		switch peer, loop := n.reach(to.Addr().String()); {
		case loop.IsValid():
			c.peer = udpAddr{addr{n.name, int(to.Port())}}
			at = netip.AddrPortFrom(loop, 0)
		default:
			c.peer = udpAddr{addr{to.Addr().String(), int(to.Port())}}
			if peer != nil {
				c.peer.host = peer.name
			}
			if at.Addr().IsUnspecified() {
				at = netip.AddrPortFrom(n.ip, 0)
			}
		}
	}
	return c, netip.AddrPortFrom(at.Addr(), uint16(c.addr.port)), err
}

// lookupStock returns the address of the node with this name, and no address if there is none.
func lookupStock(name string) ([]netip.Addr, error) {
	h := hostHere()
	if h == nil {
		return nil, errNoHost
	}
	w := h.n.world
	e := w.entrance()
	if !e.beginCall() {
		return nil, ErrForeign
	}
	defer e.endCall()
	to := w.nodes[name]
	switch {
	case to == nil:
		return nil, nil
	case w.nodeAt(to.ip.String()) != to:
		return nil, fmt.Errorf("simulation: two nodes have the address of %s, %v", name, to.ip)
	}
	return []netip.Addr{to.ip}, nil
}

// namesStock returns the name of the node with this address.
func namesStock(a netip.Addr) []string {
	h := hostHere()
	if h == nil {
		return nil
	}
	e := h.n.world.entrance()
	if !e.beginCall() {
		return nil
	}
	defer e.endCall()
	if n := h.n.world.nodeAt(a.String()); n != nil && n.name != a.String() {
		return []string{n.name + "."}
	}
	return nil
}

func addrStock() netip.Addr {
	if h := hostHere(); h != nil {
		return h.n.ip
	}
	return netip.IPv4Unspecified()
}

// addrPortOf returns the address of a *net.TCPAddr or a *net.UDPAddr.
func addrPortOf(a net.Addr) netip.AddrPort {
	var p netip.AddrPort
	switch a := a.(type) {
	case *net.TCPAddr:
		p = a.AddrPort()
	case *net.UDPAddr:
		p = a.AddrPort()
	}
	if !p.Addr().IsValid() { // a nil IP
		return netip.AddrPortFrom(netip.IPv4Unspecified(), p.Port())
	}
	return netip.AddrPortFrom(p.Addr().Unmap().WithZone(""), p.Port())
}

// address returns the address of an end of a connection.
func (c *conn) address(n *Node, at addr, path string) net.Addr {
	if c.unix {
		return &net.UnixAddr{Name: path, Net: "unix"}
	}
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(cmp.Or(c.loop, n.ip), uint16(at.port)))
}

// A stockConn is a conn with addresses of package net.
type stockConn struct{ *conn }

func (c stockConn) LocalAddr() net.Addr  { return c.address(c.node, c.local, c.path) }
func (c stockConn) RemoteAddr() net.Addr { return c.address(c.peer.node, c.remote, c.peer.path) }

// A stockListener is a listener with an address of package net.
type stockListener struct {
	*listener
	at net.Addr
}

func (l stockListener) Addr() net.Addr { return l.at }

func (l stockListener) Accept() (net.Conn, error) {
	c, err := l.listener.Accept()
	if err != nil {
		return nil, err
	}
	return stockConn{c.(*conn)}, nil
}

// A stockPacket is a packetConn with addresses of package net.
type stockPacket struct {
	*packetConn
	at net.Addr
}

func (c stockPacket) LocalAddr() net.Addr { return c.at }

func (c stockPacket) ReadFrom(p []byte) (int, net.Addr, error) {
	n, d, err := c.next(p)
	if err != nil {
		return 0, nil, err
	}
	return n, net.UDPAddrFromAddrPort(netip.AddrPortFrom(cmp.Or(d.loop, d.node.ip), uint16(d.from.port))), nil
}

// WriteTo sends p. What nobody receives is lost.
func (c stockPacket) WriteTo(p []byte, to net.Addr) (int, error) {
	a := addrPortOf(to)
	err := c.brief(func() error {
		n, loop := c.node.reach(a.Addr().String())
		switch {
		case n == nil:
			return nil
		case c.local && !loop.IsValid():
			return syscall.EINVAL // so does Linux
		}
		return c.send(p, n, int(a.Port()), loop)
	})
	if err != nil {
		return 0, c.fail("write", err)
	}
	return len(p), nil
}

// The ports of unix sockets, which no other socket uses.
const firstUnix = 1 << 16

// listenUnix listens on a path. The path is free again when the listener is closed, or when n crashes.
func (n *Node) listenUnix(path string) (*listener, error) {
	if err := n.usable("tcp", "tcp"); err != nil {
		return nil, err
	}
	if path == "" {
		return nil, syscall.EINVAL
	}
	port, ok := n.paths[path]
	if !ok {
		port = firstUnix + len(n.paths)
		if n.paths == nil {
			n.paths = map[string]int{}
		}
		n.paths[path] = port
	}
	at := binding{port: port}
	if n.tcp.taken(at, true) {
		return nil, syscall.EADDRINUSE
	}
	l := &listener{node: n, boot: n.boots, local: true, addr: addr{n.name, port}}
	n.listenAt(at, l, path)
	return l, nil
}

func (n *Node) dialUnix(ctx context.Context, path string) (*conn, error) {
	port, ok := n.paths[path]
	if !ok || n.tcp.find(port, true) == nil {
		return nil, syscall.ENOENT
	}
	if n.inside == nil {
		n.inside = &Link{w: n.world, ends: pair{n.name, n.name}, wire: network.Wire{Clock: &n.world.clock, Faults: &network.Faults{}}}
	}
	n.noteDialled(n, port, path)
	return n.connect(ctx, &pendingDial{path: path, loop: netip.IPv6Loopback()}, n, port, n.inside)
}
