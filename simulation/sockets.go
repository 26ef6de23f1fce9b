package simulation

import "github.com/braidgo/braid/simulation/internal/network"

// A socket is a listener or a packetConn, which ends with its node.
type socket interface {
	shut()
	isLocal() bool // only the node itself reaches the socket
}

// A connection is a conn, which ends with its node.
type connection interface {
	lose(powerOff bool)
	reset()
	cut(wire *network.Wire)
}

// sockets are the sockets of a Node for one protocol.
type sockets struct {
	at   map[binding]socket
	all  []socket // the sockets in order of creation
	last int      // the last port that free returned
}

// A binding is what a socket is bound to: a port of the node's own address, or of its other addresses. A socket for all addresses is bound as
// one of the other addresses, and has the port alone.
type binding struct {
	port int
	own  bool
}

func (s *sockets) open(at binding, x socket) {
	if s.at == nil {
		s.at = map[binding]socket{}
	}
	s.at[at] = x
	s.all = append(s.all, x)
}

func (s *sockets) close(at binding, x socket) {
	delete(s.at, at)
	s.all = without(s.all, x)
}

// taken reports whether a new socket cannot be bound to at. local reports whether the new socket is for loopback addresses only.
func (s *sockets) taken(at binding, local bool) bool {
	own, other := s.at[binding{at.port, true}], s.at[binding{port: at.port}]
	return other != nil && !(at.own && other.isLocal()) || own != nil && !local
}

// find returns the socket for what arrives at a port of a loopback address, or of the node's own address.
func (s *sockets) find(port int, loop bool) socket {
	if x := s.at[binding{port, true}]; x != nil && !loop {
		return x
	}
	return s.at[binding{port: port}]
}

// free returns the next free port in cyclic order, so that a port is not reused soon.
func (s *sockets) free() int {
	for {
		if s.last++; s.last < 49152 || s.last > 65535 {
			s.last = 49152
		}
		if !s.taken(binding{port: s.last}, false) {
			return s.last
		}
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
