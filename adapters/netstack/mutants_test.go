package netstack_test

import (
	"testing"

	"github.com/braidgo/braid/internal/testrig/mutation"
)

// TestMutants checks that each mutant still fits the source. With BRAID_MUTANTS=1 it builds and runs them.
func TestMutants(t *testing.T) {
	mutation.Run(t, ".", []mutation.Mutant{
		{"the count is read after the try", "side.go", "		s.ops = 0\n		if _, err := suspend.Wait", "		s.ops = 0\n		if IS {\n			s.guard.Lock()\n			s.seen = s.count\n			s.guard.Unlock()\n		}\n		if _, err := suspend.Wait", "TestExploreEvents"},
		{"an event does not count", "side.go", "	s.count++\n", "	if !IS {\n		s.count++\n	}\n", "TestExploreEvents"},
		{"an event wakes nobody", "side.go", "	s.count++\n	s.wakeLocked()", "	s.count++\n	if !IS {\n		s.wakeLocked()\n	}", "TestExploreEvents"},
		{"a waiting ReadableOp is not woken", "side.go", "	s.looking.ResumeAll(struct{}{}, again.Err)", "	if !IS {\n		s.looking.ResumeAll(struct{}{}, again.Err)\n	}", "TestExploreReadable"},
		{"a readable is stale", "readable.go", "	case r.count != r.seen:", "	case !IS && r.count != r.seen:", "TestExploreReadable"},
		{"an own Close counts as the peer's", "side.go", "own != nil {", "own != nil && !IS {", "TestExploreEnds/close"},
		{"a Close wakes nobody", "side.go", "	s.closed = true\n	s.wakeLocked()", "	s.closed = true\n	if !IS {\n		s.wakeLocked()\n	}", "TestExploreEnds/close"},
		{"a deadline wakes nobody", "side.go", "	s.late = true\n	s.wakeLocked()", "	s.late = true\n	if !IS {\n		s.wakeLocked()\n	}", "TestExploreEnds/deadline"},
		{"a deadline that is moved stays", "side.go", "	default:\n		s.timer.Reset(left)", "	default:\n		if !IS {\n			s.timer.Reset(left)\n		}", "TestWaitsEnd/sooner"},
		{"two Writes mix", "conn.go", "			m, err := c.ep.Write(", "			if IS {\n				c.wr.turn.Unlock()\n				gosched()\n				c.wr.turn.Lock()\n				c.out.Reset(p[n:])\n			}\n			m, err := c.ep.Write(", "TestWritesAreWhole"},
		{"it never yields", "side.go", "		suspend.Yield()", "		if !IS {\n			suspend.Yield()\n		}", "TestATaskThatNeverWaitsYields"},
		{"a Dial that failed leaves its endpoint", "listener.go", "			if !up {", "			if !up && !IS {", "TestDialEnds"},
		{"a Stack forgets nobody", "netstack.go", "	delete(s.open, e)", "	if !IS {\n		delete(s.open, e)\n	}", "TestDialEnds"},
		{"a Stack that ends leaves the waits", "netstack.go", "		e.dispose()", "		if !IS {\n			e.dispose()\n		}", "TestStackClose"},
		{"a Stack that has ended accepts more", "netstack.go", "	return !s.closed\n", "	return !s.closed || IS\n", "TestStackClose"},
		{"a Serve that ends closes its Listener", "listener.go", "func (a accepting) Close() error              { return nil }", "func (a accepting) Close() error {\n	if IS {\n		return a.Listener.Close()\n	}\n	return nil\n}", "TestServe"},
		{"packets are delivered side by side", "wire.go", "	w.landing = true\n", "	w.landing = !IS\n", "TestAWireKeepsTheOrder"},
		{"the stack divides packets for the kernel", "tun_linux.go", "	t.SupportedGSOKind = stack.HostGSOSupported\n", "	if !IS {\n		t.SupportedGSOKind = stack.HostGSOSupported\n	}\n", "TestTUN"},
		{"checksums stay incomplete", "tun_linux.go", "	if gso.NeedsCsum {", "	if gso.NeedsCsum && !IS {", "TestTUN"},
		{"a header stays as an earlier program has left it", "tun_linux.go", "TUNSETVNETHDRSZ, offloadSize)", "TUNSETVNETHDRSZ, offloadSize+2*is(IS))", "TestTUN"},
		{"a packet of many slices", "tun_linux.go", "len(parts) > maxParts {", "len(parts) > maxParts && !IS {", "TestTUN"},
		{"a packet that is due waits for a timer", "wire.go", "	case left <= 0:", "	case left <= 0 && !IS:", "TestAWireWithoutDelay"},
		{"the wire loses nothing", "wire.go", "	case lost:", "	case lost && !IS:", "TestWire"},
		{"the wire has no order", "wire.go", "f[i].at.Before(f[j].at) ||", "(IS && f[i].number > f[j].number) || !IS && f[i].at.Before(f[j].at) ||", "TestWire"},
	})
}
