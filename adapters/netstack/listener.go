package netstack

import (
	"context"
	"math"
	"net"
	"net/netip"
	"strconv"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
)

// A Listener is a net.Listener of a Stack.
type Listener struct {
	endpoint
	network string
	addr    net.Addr
	serves  *semaphore.Semaphore // a Serve under way has a permit
}

// backlog is the maximum number of connections that wait for an Accept.
const backlog = 4096

// Listen listens on addr, a port with an optional IP address of the stack. The network must be tcp, tcp4 or tcp6. Port
// 0 means a free port.
func (s *Stack) Listen(network, addr string) (*Listener, error) {
	ln := &Listener{network: network, serves: semaphore.New(everyServe)}
	err := func() error {
		at, proto, err := s.parse(network, addr)
		if err != nil {
			return err
		}
		queue := new(waiter.Queue)
		ep, e := s.gv.NewEndpoint(tcp.ProtocolNumber, proto, queue)
		if e != nil {
			return errno(e)
		}
		ep.SocketOptions().SetReuseAddress(true) // package net sets it, too; otherwise connections of an earlier Listener would block the port
		ep.SocketOptions().SetV6Only(network == "tcp6")
		if e = ep.Bind(at); e == nil {
			e = ep.Listen(backlog)
		}
		if e != nil {
			ep.Close()
			return errno(e)
		}
		local, _ := ep.GetLocalAddress()
		ln.addr = tcpAddr(local)
		return ln.register(s, ep, queue)
	}()
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: network, Addr: named{network, addr}, Err: err}
	}
	return ln, nil
}

// Serve accepts connections and runs handler for each of them, as a task of the scheduler Options.On. Once ctx is
// done, the connection's I/O fails with the cancellation error. Serve closes the connection when handler returns,
// panics or exits.
//
// Serve suspends its caller. Serve stops accepting when ctx is done, when the Listener or the Stack is closed, or when
// Options.On refuses a task. Serve returns when every handler has ended, and always with an error. If ctx is done by
// then, Serve returns the cancellation error. Otherwise Serve returns net.ErrClosed after a Close, and the scheduler's
// error after a refusal. Serve cancels the handlers only if ctx is done. Serve does not close the Listener.
func (ln *Listener) Serve(ctx context.Context, handler func(ctx context.Context, c net.Conn)) error {
	if handler == nil {
		panic("netstack: nil handler")
	}
	if err := suspend.Err(ctx); err != nil {
		return err
	}
	if !ln.serves.TryAcquire(1) { // a Shutdown waits
		return ln.fail("accept", net.ErrClosed)
	}
	defer ln.serves.Release(1)
	return eventloop.Serve(ctx, accepting{ln, ctx}, ln.stack.on, -1, func(_ context.Context, c net.Conn) {
		own := c.(interface{ NetConn() net.Conn }).NetConn().(*Conn)
		handler(ctx, bound{own, ctx})
	})
}

// An accepting is a Listener whose Accept fails when ctx is done, so that Serve can stop without closing the Listener.
type accepting struct {
	*Listener
	ctx context.Context
}

func (a accepting) Accept() (net.Conn, error) { return a.accept(a.ctx) }
func (a accepting) Close() error              { return nil }

// A bound is a Conn whose Read and Write fail when ctx is done.
type bound struct {
	*Conn
	ctx context.Context
}

func (b bound) Read(p []byte) (int, error)  { return b.ReadContext(b.ctx, p) }
func (b bound) Write(p []byte) (int, error) { return b.WriteContext(b.ctx, p) }

// NetConn returns the underlying Conn.
func (b bound) NetConn() net.Conn { return b.Conn }

// Accept accepts the next connection. Accept suspends the caller until a connection arrives.
func (ln *Listener) Accept() (net.Conn, error) { return ln.accept(background) }

func (ln *Listener) accept(ctx context.Context) (net.Conn, error) {
	var ep tcpip.Endpoint
	var queue *waiter.Queue
	err := ln.rd.do(ctx, func() (err tcpip.Error) {
		ep, queue, err = ln.ep.Accept(nil)
		return err
	})
	if err == nil {
		c := new(Conn)
		if err = c.register(ln.stack, ep, queue); err == nil {
			c.connected()
			return c, nil
		}
	}
	return nil, ln.fail("accept", err)
}

// Close stops listening. Calls of Accept and Serve, including those under way, fail with net.ErrClosed. Accepted
// connections stay open, but connections that wait for an Accept are reset.
func (ln *Listener) Close() error { return ln.fail("close", ln.close()) }

// Shutdown closes the Listener and waits until every Serve under way, and thus every handler, has returned. If ctx is done
// before that, Shutdown returns the cancellation error. The remaining handlers continue until they return or the context
// of their Serve cancels them. If no Serve is under way, the end of ctx does not matter. A second Shutdown waits in the same
// way, and then returns net.ErrClosed, as a second Close does. A handler must not call Shutdown, because Shutdown would wait
// for the handler.
func (ln *Listener) Shutdown(ctx context.Context) error {
	err := ln.Close()
	if e := ln.serves.Acquire(ctx, everyServe); e != nil && !ln.serves.TryAcquire(everyServe) {
		return e
	}
	ln.serves.Release(everyServe)
	return err
}

const everyServe = math.MaxInt64 // permits

// Addr returns the address on which the Listener listens.
func (ln *Listener) Addr() net.Addr { return ln.addr }

// SetDeadline sets the time after which Accepts, including those under way, fail with os.ErrDeadlineExceeded. The zero
// time means never.
func (ln *Listener) SetDeadline(t time.Time) error { return ln.fail("set", ln.rd.setDeadline(t)) }

func (ln *Listener) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return &net.OpError{Op: op, Net: ln.network, Addr: ln.addr, Err: err}
}

// Dial connects to addr, an IP address with a port. The network must be tcp, tcp4 or tcp6. Dial suspends the caller.
// Dial does not resolve names, because a Stack has no resolver. If ctx is done before the connection is established,
// Dial abandons the handshake and fails with the cancellation error.
func (s *Stack) Dial(ctx context.Context, network, addr string) (*Conn, error) {
	c := new(Conn)
	err := func() error {
		at, proto, err := s.parse(network, addr)
		if err != nil {
			return err
		}
		if err := suspend.Err(ctx); err != nil {
			return err
		}
		queue := new(waiter.Queue)
		ep, e := s.gv.NewEndpoint(tcp.ProtocolNumber, proto, queue)
		if e != nil {
			return errno(e)
		}
		if err := c.register(s, ep, queue); err != nil {
			return err
		}
		up := false
		defer func() {
			if !up { // the connect has failed, or a method of ctx has panicked
				_ = c.close()
			}
		}()
		started := false
		err = c.wr.do(ctx, func() tcpip.Error {
			if !started {
				started = true
				if e := ep.Connect(at); e != nil {
					if _, under := e.(*tcpip.ErrConnectStarted); !under {
						return e
					}
				}
			}
			if ep.Readiness(waiter.WritableEvents) == 0 {
				return &tcpip.ErrWouldBlock{}
			}
			return ep.LastError()
		})
		up = err == nil
		return err
	}()
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: named{network, addr}, Err: err}
	}
	c.connected()
	return c, nil
}

// parse converts addr to an address of gVisor's stack. If addr has no host, the protocol is IPv6, except for the
// network tcp4.
func (s *Stack) parse(network, addr string) (at tcpip.FullAddress, proto tcpip.NetworkProtocolNumber, err error) {
	if network != "tcp" && network != "tcp4" && network != "tcp6" {
		return at, 0, net.UnknownNetworkError(network)
	}
	host, service, err := net.SplitHostPort(addr)
	if err != nil {
		return at, 0, err
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return at, 0, &net.AddrError{Err: "invalid port", Addr: addr}
	}
	at.Port = uint16(port)
	if host == "" {
		if network == "tcp4" {
			return at, header.IPv4ProtocolNumber, nil
		}
		return at, header.IPv6ProtocolNumber, nil
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return at, 0, &net.AddrError{Err: "not an IP address", Addr: addr}
	}
	if proto, at.Addr = address(ip); network == "tcp4" && proto != header.IPv4ProtocolNumber || network == "tcp6" && proto != header.IPv6ProtocolNumber {
		return at, 0, &net.AddrError{Err: "not a " + network + " address", Addr: addr}
	}
	if ip.IsUnspecified() { // the zero Address is gVisor's wildcard
		at.Addr = tcpip.Address{}
	}
	return at, proto, nil
}

// address converts ip to an address of gVisor's stack.
func address(ip netip.Addr) (tcpip.NetworkProtocolNumber, tcpip.Address) {
	ip = ip.Unmap()
	if ip.Is4() {
		return header.IPv4ProtocolNumber, tcpip.AddrFrom4(ip.As4())
	}
	return header.IPv6ProtocolNumber, tcpip.AddrFrom16(ip.As16())
}

func tcpAddr(a tcpip.FullAddress) *net.TCPAddr {
	ip := net.IP(a.Addr.AsSlice())
	if len(ip) == 0 {
		ip = net.IPv6unspecified
	}
	return &net.TCPAddr{IP: ip, Port: int(a.Port)}
}

// A named is an address as the caller specified it.
type named struct{ network, address string }

func (a named) Network() string { return a.network }
func (a named) String() string  { return a.address }
