package netstack

import (
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/waiter"
)

// Open returns the number of endpoints that a Close would close.
func (s *Stack) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// Readable reports whether the stack has data for a Read.
func (c *Conn) Readable() bool { return c.ep.Readiness(waiter.ReadableEvents) != 0 }

// InFlight returns how many packets are on their way from an end of a Pair.
func InFlight(end stack.LinkEndpoint) (n int) {
	w := end.(*wireEnd)
	w.mu.Lock()
	defer w.mu.Unlock()
	if n = len(w.flying); w.landing {
		n++
	}
	return n
}

// Timed reports whether an end of a wire has ever used a timer.
func Timed(end stack.LinkEndpoint) bool {
	w := end.(*wireEnd)
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.timer != nil
}
