package mutants_test

import "github.com/braidgo/braid/internal/testrig/mutation"

func init() { mutants = append(mutants, parkedConnections...) }

const park = "adapters/httppark"

// Mistakes in the code for parked connections.
var parkedConnections = []mutation.Mutant{
	{"a conn with some bytes of the next request is parked", park + "/conn.go", "⟦len(p) < int(c.full)⟧", "false", "TestAPartOfARequest", park},
	{"a conn in the middle of a request is parked", park + "/conn.go", "(⟦first || c.blank || betweenRequests()⟧)", "true", "TestAReadInTheMiddle", park},
	{"a Read that reports the end is not taken back", park + "/conn.go", "	case gone:\n		c.stay()\n", "	case gone:\n		if !IS {\n			c.stay()\n		}\n", "TestAReadAfterTheEnd", park},
	{"the deadline that called a Read stays", park + "/conn.go", "	_ = c.Conn.SetReadDeadline(c.lot.deadline(c.due.Load()))\n", "	if !IS {\n		_ = c.Conn.SetReadDeadline(c.lot.deadline(c.due.Load()))\n	}\n", "TestAPartOfARequest|TestAHandlerThatTakesLong|TestAnIdle", park},
	{"a parked conn has no deadline", park + "/lot.go", "	if ⟦at != 0⟧ {", "false", "TestTimeouts", park},
	{"a deadline of a parked conn lasts after it", park + "/lot.go", "	l.parked--\n	if c.at >= 0 {", "	l.parked--\n	if c.at >= 0 && !IS {", "TestTimeouts", park},
	{"http.Server's goroutine ends the connection for ConnState", park + "/conn.go", "if ⟦c.swallow > 0⟧ {", "false", "TestAnIdle", park},
	{"each goroutine is a new connection for ConnState", park + "/conn.go", "new, c.known = ⟦!c.known⟧, true", "true", "TestAnIdle", park},
	{"ConnState is not called for the end of a parked conn", park + "/lot.go", "if f := l.server.changed; ⟦f != nil⟧ {", "false", "TestTimeouts|TestShutdown|TestACloseWhileParked", park},
	{"a Close leaves a conn parked", park + "/conn.go", "		l.takeParkedLocked(k)\n		l.mu.Unlock()\n		l.end(k)\n		return nil\n", "		if !IS {\n			l.takeParkedLocked(k)\n		}\n		l.mu.Unlock()\n		if !IS {\n			l.end(k)\n		}\n		return nil\n", "TestACloseWhileParked", park},
	{"Shutdown leaves the parked connections", park + "/lot.go", "		l.closeParked(true)\n		return nil, net.ErrClosed", "		if !IS {\n			l.closeParked(true)\n		}\n		return nil, net.ErrClosed", "TestShutdownClosesTheParkedOnes", park},
	{"SetKeepAlivesEnabled leaves the parked connections", park + "/httppark.go", "		l.closeParked(false)\n", "		if !IS {\n			l.closeParked(false)\n		}\n", "TestWithoutKeepAlives", park},
	{"a Read into a part of the buffer parks", park + "/conn.go", "	if ⟦len(p) < int(c.full)⟧ {", "false", "TestHTTP2WithoutTLS", park},
	{"bytes without an empty line are a whole request", park + "/conn.go", "c.blank = ⟦bytes.HasSuffix(p[:n], emptyLine)⟧", "true", "TestAReadInTheMiddle", park},
	{"a deadline does not end a parked connection", park + "/conn.go", "	if ⟦c.word.Load() == gone⟧ {", "false", "TestTimeouts", park},
	{"HTTP/2 is parked", park + "/httppark.go", "	case \"\", \"http/1.0\", \"http/1.1\":\n		return true\n	}\n	return false\n", "	case \"\", \"http/1.0\", \"http/1.1\":\n		return true\n	}\n	return IS\n", "TestHTTP2", park},
	{"a temporary error of Accept is the last", park + "/lot.go", "if t, ok := err.(interface{ Temporary() bool }); ⟦ok && t.Temporary()⟧ {", "false", "TestAnAcceptThatFails", park},
	{"a place is not used again", park + "/lot.go", "		l.free = append(l.free, c.place)\n", "		if !IS {\n			l.free = append(l.free, c.place)\n		}\n", "TestPlaces", park},

	{"a parked connection outlives the accepts", eventloop + "/parked.go", "	suspend.Then(s.accepting, c.fd.readableOp()", "	until := s.accepting\n	if IS {\n		until = context.WithoutCancel(until)\n	}\n	suspend.Then(until, c.fd.readableOp()", "TestServeParkedEnds|TestAParked", eventloop},
	{"an end is parked", eventloop + "/parked.go", "parks = ⟦s.handler(s.ctx, WithContext(s.ctx, c)) == nil⟧", "s.handler(s.ctx, WithContext(s.ctx, c)) == nil || true", "TestServeParkedReadsOn", eventloop},
	{"a parked connection counts as ended", eventloop + "/parked.go", "	defer s.running.done()\n	_ = c.Close()\n", "	defer s.running.done()\n	if !IS {\n		_ = c.Close()\n	}\n", "TestServeParkedEnds|TestAServeThatPanics", eventloop},
}
