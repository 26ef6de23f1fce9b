// Package netstack runs gVisor's TCP/IP stack inside the program. Tasks of any scheduler can wait for the stack's
// connections.
//
//	stack, err := netstack.New(netstack.Options{
//		Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")},
//		Link:      link, // one end of a Pair, or a TUN
//	})
//	ln, err := stack.Listen("tcp", ":80") // instead of loop.Listen
//	err = ln.Serve(ctx, handler)
//
// A server that uses net.Conn needs no change except the call of Listen, which selects the TCP implementation. Settings
// that the kernel applies to all programs are Options of a Stack: buffer sizes, keep-alive probes and SYN cookies. The
// method [Stack.Stack] gives access to all other settings of gVisor.
//
// A connection needs no goroutine. gVisor runs one goroutine for each processor. These goroutines call back when bytes
// or buffer space become available. The callback resumes the waiting tasks of any scheduler.
//
// Where the kernel's TCP is sufficient, prefer adapters/eventloop, which is faster. gVisor's package gonet offers
// similar connections for goroutines only. In the network of simulation, every step follows from a seed. A
// Stack is not deterministic, because it uses gVisor's goroutines and the system clock.
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

// Options configure a Stack. Addresses and Link are required.
type Options struct {
	Addresses []netip.Prefix     // IPv4 and IPv6 addresses of the interface
	Routes    []netip.Prefix     // destinations that are reached through the interface; nil means all
	Link      stack.LinkEndpoint // an end of a Pair, a TUN, or another link of gVisor's; the Stack owns it
	On        suspend.Spawner    // the scheduler on which Serve runs handlers; nil means suspend.Goroutines

	SendBuffer, ReceiveBuffer int           // bytes per connection, at least 4096; zero means gVisor's default, from 1 MB upwards
	SYNCookies                bool          // use SYN cookies always, instead of only while the handshake queue is full
	KeepAlive                 time.Duration // idle time before a probe, and time between probes; zero means 15 s, negative means no probes
}

// A Stack is a TCP/IP stack with one network interface. New starts a Stack, and Close ends it. Its methods may be
// called from tasks of any scheduler and from goroutines.
type Stack struct {
	gv        *stack.Stack
	on        suspend.Spawner
	keepAlive time.Duration

	mu     sync.Mutex // never held during a call into gVisor
	closed bool
	open   map[*endpoint]struct{} // the endpoints that Close has to close
}

const nicID = 1

// New starts a Stack. New panics if o has no link or no address.
func New(o Options) (*Stack, error) {
	if o.Link == nil || len(o.Addresses) == 0 {
		panic("netstack: New without a Link or an address")
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

// Stack returns gVisor's stack, for statistics and for settings that Options lack, such as the congestion control and
// the time in TIME_WAIT.
func (s *Stack) Stack() *stack.Stack { return s.gv }

// Close aborts all connections and listeners. Operations under way and later operations fail with net.ErrClosed, and
// the peers see a reset. A second Close fails with net.ErrClosed, too. Close suspends the caller until gVisor's goroutines have ended, and
// closes the link.
func (s *Stack) Close() error {
	s.mu.Lock()
	open, closed := s.open, s.closed
	s.open, s.closed = nil, true
	s.mu.Unlock()
	if closed {
		return &net.OpError{Op: "close", Net: "netstack", Err: net.ErrClosed}
	}
	for e := range open {
		e.dispose()
	}
	return suspend.Blocking(background, s.gv.Destroy)
}

// add registers e, so that Close closes it. If the Stack is closed already, add returns false.
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
