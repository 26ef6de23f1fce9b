package simulation

// A socket is a listener or a packetConn, which ends with its node.
type socket interface{ shut() }

// sockets are the sockets of a Node for one protocol.
type sockets struct {
	at   map[int]socket // the sockets by port
	all  []socket       // the sockets in order of creation
	last int            // the last port that free returned
}

func (s *sockets) open(port int, x socket) {
	if s.at == nil {
		s.at = map[int]socket{}
	}
	s.at[port] = x
	s.all = append(s.all, x)
}

func (s *sockets) close(port int, x socket) {
	delete(s.at, port)
	s.all = without(s.all, x)
}

// free returns the next free port in cyclic order, so that a port is not reused soon.
func (s *sockets) free() int {
	for {
		if s.last++; s.last < 49152 || s.last > 65535 {
			s.last = 49152
		}
		if s.at[s.last] == nil {
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
