package simulation

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/braidgo/braid/simulation/internal/draws"
	"github.com/braidgo/braid/suspend"
)

// A listener is a TCP listener of a Node, see Node.Listen.
type listener struct {
	node    *Node
	boot    int // the boot of the node that the listener belongs to
	local   bool
	own     bool // the listener is bound to the node's own address, see binding
	addr    addr
	backlog []*conn
	accept  endpoint
	closed  bool
}

// Listen listens on an address of the form ":port". The network must be tcp, tcp4 or tcp6. The address may begin with the name or the IP address
// of n, see Node, or with 0.0.0.0 or [::]. If the address begins with localhost, 127.0.0.1 or [::1], only n itself can dial it. Port 0 means a
// free port. Listeners on the IP address of n and on its loopback address may share a port.
//
// Several tasks may call the listener's methods concurrently. Accept suspends its caller. Like a *net.TCPListener, the listener has a
// method SetDeadline.
func (n *Node) Listen(network, address string) (net.Listener, error) {
	l, err := n.listen(network, address)
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: network, Addr: l.addr, Err: err}
	}
	return l, nil
}

func (n *Node) listen(network, address string) (*listener, error) {
	at, local, err := n.bind("tcp", network, address, &n.tcp)
	l := &listener{node: n, boot: n.boots, local: local, own: at.own, addr: addr{n.name, at.port}}
	if err == nil {
		n.listenAt(at, l, "")
	}
	return l, err
}

// listenAt opens l. The path of a unix socket is the text of the event.
func (n *Node) listenAt(at binding, l *listener, path string) {
	h, id := n.world.caller()
	n.world.note(event{kind: listens, host: h, task: id, of: &n.place, data: uint64(at.port), text: path})
	n.used = true
	n.tcp.open(at, l)
}

// bind checks the arguments of Listen or ListenPacket, and returns the binding, and whether only n itself can reach the socket.
func (n *Node) bind(protocol, network, address string, s *sockets) (at binding, local bool, err error) {
	if err := n.usable(protocol, network); err != nil {
		return binding{}, false, err
	}
	name, port, err := split(address)
	at = binding{port, name == n.ip.String()}
	switch local = loopback(name); {
	case err != nil:
		return binding{}, false, err
	case name != n.name && !anywhere(name) && !local && !at.own:
		return at, false, syscall.EADDRNOTAVAIL
	case port == 0:
		for at.port = n.tcp.free(); s.taken(at, local); at.port = n.tcp.free() {
		}
	case s.taken(at, local):
		return at, false, syscall.EADDRINUSE
	}
	return at, local, nil
}

// loopback reports whether name is a loopback address, and anywhere(name) reports whether name is empty or an unspecified address.
func loopback(name string) bool {
	return name == "localhost" || strings.HasPrefix(name, "127.") || name == "::1"
}
func anywhere(name string) bool { return name == "" || name == "0.0.0.0" || name == "::" }

func split(address string) (name string, port int, err error) {
	name, service, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	port, err = strconv.Atoi(service)
	if err != nil || port < 0 || port > 65535 {
		return "", 0, &net.AddrError{Err: "invalid port", Addr: address}
	}
	return name, port, nil
}

// usable returns an error if the caller cannot use n's network, or if the given network is not a name for the protocol.
func (n *Node) usable(protocol, network string) error {
	switch {
	case !tasks{n.world}.beginCall():
		return ErrForeign
	case n.dead || n.world.over:
		return net.ErrClosed
	case network != protocol && network != protocol+"4" && network != protocol+"6":
		return net.UnknownNetworkError(network)
	}
	return nil
}

// Accept suspends the caller until there is a connection, and returns the connection. Accept fails with net.ErrClosed when l is closed, and
// with os.ErrDeadlineExceeded after the deadline.
func (l *listener) Accept() (net.Conn, error) {
	t := l.accept.enqueue(l.node.world)
	if t == nil {
		return nil, l.fail(ErrForeign)
	}
	defer l.accept.dequeue(t)
	for {
		switch {
		case l.closed:
			l.node.late(l.boot)
			return nil, l.fail(net.ErrClosed)
		case l.accept.expired:
			return nil, l.fail(os.ErrDeadlineExceeded)
		case l.accept.isFirst(t) && len(l.backlog) > 0:
			c := l.backlog[0]
			l.backlog[0] = nil
			l.backlog = l.backlog[1:]
			return c, nil
		}
		t.wait()
	}
}

// Close stops listening. Pending and later Accepts fail with net.ErrClosed. Connections that were not accepted are reset.
func (l *listener) Close() error { return l.brief(l.shut) }

// brief calls f on the World if l is open.
func (l *listener) brief(f func()) error {
	err := l.node.world.brief(func() error {
		if l.closed {
			return net.ErrClosed
		}
		f()
		return nil
	})
	if err != nil {
		return l.fail(err)
	}
	return nil
}

func (l *listener) shut() {
	l.closed = true
	l.node.tcp.close(binding{l.addr.port, l.own}, l)
	l.accept.clear(l.node.world)
	for _, c := range l.backlog {
		c.abort()
	}
	l.backlog = nil
	l.accept.wakeAll()
}

func (l *listener) isLocal() bool { return l.local }

// Addr returns the address of l.
func (l *listener) Addr() net.Addr { return l.addr }

// SetDeadline sets the time after which pending and later Accepts fail with os.ErrDeadlineExceeded. The zero time means no deadline.
func (l *listener) SetDeadline(t time.Time) error {
	return l.brief(func() { l.accept.deadline(&l.node.host, t) })
}

func (l *listener) fail(err error) error {
	giveWay()
	return &net.OpError{Op: "accept", Net: "tcp", Addr: l.addr, Err: err}
}

// The timeouts of Linux for a Dial.
const (
	dialTimeout = 127 * time.Second
	unreachable = 3 * time.Second
)

// Dial connects to an address of the form "name:port", with the name or the IP address of a node, and suspends the caller until the connection
// is established. The network must be tcp, tcp4 or tcp6. If ctx is cancelled first, Dial fails with the error of the cancellation. Dial fails
// with ECONNREFUSED if nothing listens on the port. It fails with ETIMEDOUT after two minutes if the link is on hold, and with EHOSTUNREACH
// after three seconds if the link is cut.
//
// Several tasks may call the connection's methods concurrently. Read suspends the caller until at least one byte has arrived, and Write
// suspends the caller while the peer has 64 KB of unread bytes. The bytes of two writes do not interleave. Like a *net.TCPConn, the
// connection has the methods CloseWrite and CloseRead: use c.(interface{ CloseWrite() error }).
//
// A deadline refers to the node's clock, see suspend.Now. A time that was derived from time.Now has a monotonic reading, and counts as the
// duration from now to this time. The duration is rounded up to a multiple of 0.1 s, or of 1 s if it is longer than 1 s. The standard
// package crypto/tls sets such deadlines.
func (n *Node) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := n.dial(ctx, network, address)
	n.noteDial(address, err)
	if err != nil {
		giveWay()
		return nil, &net.OpError{Op: "dial", Net: network, Addr: namedAddr(address), Err: err}
	}
	return c, nil
}

// noteDial adds an event for the outcome of a Dial.
func (n *Node) noteDial(address string, err error) {
	n.used = true
	w := n.world
	h, id := w.caller()
	e := event{kind: connected, host: h, task: id, text: address}
	switch {
	case errors.Is(err, ErrForeign):
		return
	case err != nil:
		e.kind, e.text = failed, address+": "+err.Error()
	}
	e.data = draws.HashString(0, e.text)
	w.note(e)
}

// A namedAddr is an address in the form that the caller of Dial used.
type namedAddr string

func (namedAddr) Network() string  { return "tcp" }
func (a namedAddr) String() string { return string(a) }

func (n *Node) dial(ctx context.Context, network, address string) (*conn, error) {
	if err := n.usable("tcp", network); err != nil {
		return nil, err
	}
	if err := suspend.Err(ctx); err != nil {
		return nil, err
	}
	name, port, err := split(address)
	if err != nil {
		return nil, err
	}
	to, loop := n.reach(name)
	if to == nil {
		return nil, &net.DNSError{Err: "no such node", Name: name, IsNotFound: true}
	}
	n.noteDialled(to, port, strconv.Itoa(port))
	return n.connect(ctx, &pendingDial{loop: loop}, to, port, n.world.Link(n.name, to.name))
}

// reach returns the node with a name or an address, as n sees it, and nil if there is no such node. If n reaches the node by a loopback address,
// loop is valid: 127.0.0.1 or ::1.
func (n *Node) reach(name string) (to *Node, loop netip.Addr) {
	switch {
	case name == n.ip.String():
		return n, netip.Addr{}
	case name == "::1" || name == "::":
		return n, netip.IPv6Loopback()
	case anywhere(name) || loopback(name) || name == n.name:
		return n, netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	if to = n.world.nodes[name]; to == nil {
		to = n.world.nodeAt(name)
	}
	return to, netip.Addr{}
}

func (n *Node) noteDialled(to *Node, port int, text string) {
	h, id := n.world.caller()
	n.world.note(event{kind: dialled, host: h, task: id, of: &to.place, data: uint64(port), text: text})
}

// A pendingDial is a Dial in progress.
type pendingDial struct {
	c, peer *conn
	answer  suspend.Resumer[error]
	given   bool   // Dial has its result, and ignores later answers
	lost    bool   // the request or the answer was lost because of a Cut
	late    *timer // the timer that makes the Dial fail
	port    int    // the local port; 0 means a free one
	loop    netip.Addr
	path    string // the path of a unix socket
}

// connect sends the request to the other node, and waits for the answer.
func (n *Node) connect(ctx context.Context, d *pendingDial, to *Node, port int, link *Link) (_ *conn, err error) {
	boot, made := n.boots, false
	d.lost = link.wire.IsCut()
	if d.port == 0 {
		d.port = n.tcp.free()
	}
	d.c, d.peer = newConns(n, to, &link.wire, d.port, port)
	d.c.loop, d.peer.loop = d.loop, d.loop
	d.c.unix, d.peer.unix, d.peer.path = d.path != "", d.path != "", d.path
	if d.lost {
		d.failAfter(unreachable, syscall.EHOSTUNREACH)
	} else {
		d.failAfter(dialTimeout, syscall.ETIMEDOUT)
	}
	link.dials = append(link.dials, d)
	defer func() {
		n.world.clock.discard(d.late)
		link.dials = without(link.dials, interface{ cut() }(d))
		if !made {
			d.given, d.c.closed = true, true
			d.c.reset() // the peer's end may be established by now
		}
	}()
	n.world.still = n.world.o.Preempt
	failed, err := suspend.Suspend(ctx, func(r suspend.Resumer[error]) (error, bool) {
		if d.answer = r; !d.lost {
			d.c.send(0, d.arrive)
		}
		return nil, false
	})
	switch {
	case err != nil:
		return nil, err
	case failed != nil:
		return nil, failed
	case n.dead || n.boots != boot:
		return nil, net.ErrClosed
	}
	made = true
	n.conns = append(n.conns, d.c)
	return d.c, nil
}

func (d *pendingDial) failAfter(t time.Duration, err error) {
	d.late = d.c.node.world.clock.after(t, nil, func() { d.answer.Resume(err, nil) })
}

// arrive handles the arrival of the request.
func (d *pendingDial) arrive() {
	peer := d.peer
	to := peer.node
	l, _ := to.tcp.find(peer.local.port, peer.loop.IsValid()).(*listener)
	switch {
	case d.lost:
	case to.off: // the node does not answer, so TCP repeats the request
		if !d.given {
			to.world.clock.after(time.Second, nil, func() {
				if !d.lost && !d.given {
					d.c.send(0, d.arrive)
				}
			})
		}
	case d.given || l == nil || l.local && !peer.loop.IsValid() || peer.out.Draws.Chance(peer.out.Wire.Faults.Refuse) && to.world.record.Comes("refuse"):
		peer.send(0, func() { d.reply(syscall.ECONNREFUSED) })
	default:
		peer.closed, peer.boot = false, to.boots
		to.conns = append(to.conns, peer)
		l.backlog = append(l.backlog, peer)
		l.accept.wakeFirst()
		peer.send(0, func() { d.reply(nil) })
	}
}

// reply handles the arrival of the answer.
func (d *pendingDial) reply(err error) {
	if !d.lost && !d.given {
		d.c.closed = err != nil
		if err == nil && d.peer.err != nil { // a reset has broken the connection before this end was established
			d.c.broke(syscall.ECONNRESET)
		}
		d.answer.Resume(err, nil)
	}
}

// cut discards the request or the answer. If the answer has already arrived, the new connection breaks.
func (d *pendingDial) cut() {
	if d.lost {
		return
	}
	d.lost = true
	d.c.node.world.clock.discard(d.late)
	d.failAfter(unreachable, syscall.EHOSTUNREACH)
	d.c.sever()
}
