// Package netstack is a TCP of the application's own: gVisor's, in this process, whose connections the tasks of any scheduler wait for.
//
//	stack, err := netstack.New(netstack.Options{
//		Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")},
//		Link:      link, // one end of a Pair, or a TUN
//	})
//	ln, err := stack.Listen("tcp", ":80") // instead of loop.Listen
//	err = ln.Serve(ctx, handler)
//
// A server that takes a net.Conn stays as it is, and the line with Listen chooses the TCP under it. Settings that the kernel makes for all
// programs are options here: buffers, probes, SYN cookies, and by [Stack.Stack] all else that gVisor lets one set.
//
// A connection has no goroutine. The stack of gVisor has one for each processor, and calls back when there are bytes or
// room; that resumes the tasks which wait, whatever their scheduler.
//
// Prefer adapters/eventloop where the kernel's TCP will do: it is faster. Package gonet of gVisor is the same for goroutines alone.
// adapters/simulation has a network whose every step follows from a seed; here goroutines of gVisor and its clock take part.
package netstack

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"

	"github.com/braidgo/braid/suspend"
)

// Options are the choices that a Stack is made with. Addresses and Link are needed.
type Options struct {
	Addresses []netip.Prefix     // the interface's addresses, IPv4 and IPv6
	Routes    []netip.Prefix     // destinations behind the interface; nil means all
	Link      stack.LinkEndpoint // an end of a Pair, a TUN, or another one of gVisor's; New takes it over
	On        suspend.Spawner    // where Serve runs handlers; nil: suspend.Goroutines

	SendBuffer, ReceiveBuffer int           // bytes of a connection, 4096 at least; 0: as gVisor has them, 1 MB and more where there is use
	SYNCookies                bool          // always, and not only while the queue of handshakes is full
	KeepAlive                 time.Duration // after how much idle time a connection is probed, and how often; 0: 15 s, negative: never
}

// A Stack is a TCP/IP with one interface. It is made by New and ends by Close. Its methods may be called from tasks of any scheduler and
// from goroutines.
type Stack struct {
	gv        *stack.Stack
	on        suspend.Spawner
	keepAlive time.Duration

	mu     sync.Mutex // held for no call of the stack
	closed bool
	open   map[*endpoint]struct{} // Close closes them
}

const nicID = 1

// New starts a Stack.
func New(o Options) (*Stack, error) {
	if o.Link == nil || len(o.Addresses) == 0 {
		panic("netstack: no link, or no address")
	}
	s := &Stack{on: o.On, keepAlive: o.KeepAlive, open: map[*endpoint]struct{}{}, gv: stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, ipv6.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
		HandleLocal:        true,
	})}
	if s.on == nil {
		s.on = suspend.Goroutines
	}
	if s.keepAlive == 0 {
		s.keepAlive = 15 * time.Second
	}
	if err := s.configure(o); err != nil {
		s.gv.Destroy()
		return nil, &net.OpError{Op: "netstack", Err: errno(err)}
	}
	return s, nil
}

func (s *Stack) configure(o Options) tcpip.Error {
	if n := o.SendBuffer; n > 0 {
		r := tcpip.TCPSendBufferSizeRangeOption{Min: tcp.MinBufferSize, Default: n, Max: n}
		if err := s.gv.SetTransportProtocolOption(tcp.ProtocolNumber, &r); err != nil {
			return err
		}
	}
	if n := o.ReceiveBuffer; n > 0 {
		r := tcpip.TCPReceiveBufferSizeRangeOption{Min: tcp.MinBufferSize, Default: n, Max: n}
		if err := s.gv.SetTransportProtocolOption(tcp.ProtocolNumber, &r); err != nil {
			return err
		}
	}
	if o.SYNCookies {
		always := tcpip.TCPAlwaysUseSynCookies(true)
		if err := s.gv.SetTransportProtocolOption(tcp.ProtocolNumber, &always); err != nil {
			return err
		}
	}
	if err := s.gv.CreateNIC(nicID, o.Link); err != nil {
		return err
	}
	for _, p := range o.Addresses {
		proto, addr := address(p.Addr())
		a := tcpip.ProtocolAddress{Protocol: proto, AddressWithPrefix: tcpip.AddressWithPrefix{Address: addr, PrefixLen: p.Bits()}}
		if err := s.gv.AddProtocolAddress(nicID, a, stack.AddressProperties{}); err != nil {
			return err
		}
	}
	routes := []tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nicID}, {Destination: header.IPv6EmptySubnet, NIC: nicID}}
	if o.Routes != nil {
		routes = nil
	}
	for _, p := range o.Routes {
		_, addr := address(p.Addr())
		routes = append(routes, tcpip.Route{Destination: tcpip.AddressWithPrefix{Address: addr, PrefixLen: p.Bits()}.Subnet(), NIC: nicID})
	}
	s.gv.SetRouteTable(routes)
	return nil
}

// Stack returns gVisor's own, for what Options have not: the congestion control, the time in TIME_WAIT, statistics.
func (s *Stack) Stack() *stack.Stack { return s.gv }

// Close aborts all connections and listeners: operations under way and later operations fail with net.ErrClosed, and
// the peers see a reset. It suspends the caller until the goroutines of the stack have ended, and closes the link.
func (s *Stack) Close() error {
	s.mu.Lock()
	open, closed := s.open, s.closed
	s.open, s.closed = nil, true
	s.mu.Unlock()
	if closed {
		return net.ErrClosed
	}
	for e := range open {
		e.end()
	}
	return suspend.Blocking(background, s.gv.Destroy)
}

// add registers e, so that Close closes it, or reports false: the Stack is closed.
func (s *Stack) add(e *endpoint) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.open[e] = struct{}{}
	}
	return !s.closed
}

func (s *Stack) forget(e *endpoint) {
	s.mu.Lock()
	delete(s.open, e)
	s.mu.Unlock()
}
