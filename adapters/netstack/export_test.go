package netstack

import "gvisor.dev/gvisor/pkg/waiter"

// Open is how many endpoints a Close would close.
func (s *Stack) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// Readable is whether the stack has something for a Read.
func (c *Conn) Readable() bool { return c.ep.Readiness(waiter.ReadableEvents) != 0 }
