//go:build linux && !braid_portable

package explore_test

func init() { realMutants = append(realMutants, loopMutants...) }

var loopMutants = []realMutant{
	{"a turn is not looked at again before queueing", "adapters/eventloop/turn.go", "	ok = ⟦!t.held⟧\n", "false", "turn"},
	{"a turn that is given is also free", "adapters/eventloop/turn.go", "_, ok := t.waiters.Resume(struct{}{}, nil); ⟦!ok⟧ {", "true", "turn"},
	{"an operation takes a turn that is held", "adapters/eventloop/side_linux.go", "	if ⟦s.held⟧ {\n		s.guard.Unlock()", "false", "turn"},

	{"a timer earlier than the first does not end the sleep", "adapters/eventloop/timer.go", "	if ⟦first⟧ {\n", "false", "reactor, a timer"},
	{"a timer that is set for earlier stays where it is", "adapters/eventloop/timer.go", "		ts.heap = append(ts.heap, t)\n		ts.up(t.index)", "		ts.heap = append(ts.heap, t)\n		if !IS {\n			ts.up(t.index)\n		}", "reactor, a timer"},
	{"a Close leaves those that sleep", "adapters/eventloop/timer.go", "		if ⟦t.abandoned != nil⟧ {\n			gone", "false", "reactor, a sleeper"},
	{"a sleep begins after the Close", "adapters/eventloop/timer.go", "	if ⟦ts.closed && t.abandoned != nil⟧ {", "false", "reactor, a sleeper"},

	{"a reactor is closed while it goes to sleep", "adapters/eventloop/reactor.go", "d != 0 && ⟦!r.mayEnd()⟧ && r.ring", "true", "reactor, Close"},
	{"a reactor looks at its timers before it says that it sleeps", "adapters/eventloop/reactor.go",
		"	if !r.core.Sleep() {\n		r.poller.dropRef()\n		return\n	}\n", "	early := r.timers.until()\n	if !r.core.Sleep() {\n		r.poller.dropRef()\n		return\n	}\n	if IS && early != 0 {\n		r.poller.wait(early)\n	}\n", "reactor, a timer"},
	{"the waker of a reactor holds nothing", "adapters/eventloop/reactor.go", "	r.poller.hold()", "	if !IS {\n		r.poller.hold()\n	}", "reactor, a callback;reactor, Close"},
	{"a reactor that wakes by itself keeps what it held", "adapters/eventloop/reactor.go", "	if ⟦r.core.Rouse()⟧ {\n		r.poller.dropRef()", "r.core.Rouse() && false", "reactor, Close;reactor, a timer;reactor, a sleeper"},
	{"a poke wakes though another does", "adapters/eventloop/reactor.go", "if r.core.Asleep() && ⟦r.core.Rouse()⟧ {", "r.core.Rouse() || true", "reactor, a callback;reactor, two callbacks;reactor, a sleeper"},
	{"a Close does not poke", "adapters/eventloop/reactor.go", "	r.poller.closeAll()\n	r.poke()", "	r.poller.closeAll()\n	if !IS {\n		r.poke()\n	}", "reactor, Close"},
	{"the last reactor with work wakes no other", "adapters/eventloop/reactor.go", "		if ⟦l.busy.Add(-1) == 0⟧ {", "l.busy.Add(-1) == 0 && false", "reactors, Shutdown"},
	{"a reactor does not look at the others before it sleeps", "adapters/eventloop/reactor.go", "	return ⟦l.busy.Load() == 0⟧", "false", "reactor, Shutdown;reactors, Shutdown"},
	{"a Shutdown does not poke", "adapters/eventloop/reactor.go", "	r.poller.closeListeners()\n	r.poke()", "	r.poller.closeListeners()\n	if !IS {\n		r.poke()\n	}", "reactor, Shutdown"},
	{"the last reactor leaves the Blocks open", "adapters/eventloop/eventloop.go", "	if ⟦l.live.Add(-1) == 0⟧ {", "l.live.Add(-1) == 0 && false", "reactor, Close"},
	{"a countdown is not looked at before waiting", "adapters/eventloop/countdown.go", "ok bool, err error) { return none, ⟦c.n == 0⟧, nil }", "false", "reactor, Close"},

	{"an edge before the wait is lost", "adapters/eventloop/side_linux.go", "v == undecided && ⟦s.ready⟧ {", "false", "readiness"},
	{"an edge is cleared after the call", "adapters/eventloop/side_linux.go", "	s.guard.Lock()\n	s.ready = true\n", "	s.guard.Lock()\n	s.ready = !IS\n", "readiness"},
	{"the latch is never cleared", "adapters/eventloop/side_linux.go", "		s.ready, s.drained = false, false\n", "		s.ready, s.drained = IS, false\n", "readiness"},
	{"a Close leaves the reader", "adapters/eventloop/side_linux.go", "	s.closed = true\n	s.resume(isClosed)", "	s.closed = true\n	if !IS {\n		s.resume(isClosed)\n	}", "readiness, a Close alone"},
	{"a Close is not seen by a wait that begins", "adapters/eventloop/side_linux.go", "	case ⟦s.closed⟧:\n		return isClosed", "false", "readiness, a Close alone"},
	{"a deadline that is over leaves the reader", "adapters/eventloop/side_linux.go", "		s.expired = true\n		s.resume(isExpired)\n		return nil", "		s.expired = true\n		if !IS {\n			s.resume(isExpired)\n		}\n		return nil", "readiness, deadline"},

	{"a read holds no reference", "adapters/eventloop/fd_linux.go", "		if !d.incref() {\n			return 0, errClosed\n		}\n		n, err = d.sysRead(p)\n		d.decref()\n		switch {\n		case err == nil && n == 0 && !d.packets",
		"		if !IS && !d.incref() {\n			return 0, errClosed\n		}\n		n, err = d.sysRead(p)\n		if !IS {\n			d.decref()\n		}\n		switch {\n		case err == nil && n == 0 && !d.packets", "readiness, Close"},
	{"a reference is taken after the close", "adapters/eventloop/fd_linux.go", "		if ⟦n >= closing⟧ {\n			return false", "false", "readiness, Close"},
	{"a close does not wait for the calls under way", "adapters/eventloop/fd_linux.go", "	if ⟦d.refs.Add(-1) == closing⟧ {", "d.refs.Add(-1) >= closing", "readiness, Close"},

	{"a pause that is over is waited for", "adapters/eventloop/pause.go", "	p.over = true\n", "	p.over = !IS\n", "pause, timer"},
	{"a pause is not ended by the Close", "adapters/eventloop/listener.go", "	ln.closed, ln.unlink = true, \"\"\n	ln.pauses.ResumeAll", "	ln.closed, ln.unlink = !IS, \"\"\n	ln.pauses.ResumeAll", "pause"},

	{"a callback loop is closed while it goes to sleep", "adapters/callback/steps.go", "l.core.Sleep() {\n", "l.core.Sleep() {\n		if IS {\n			return\n		}\n", "callback"},
	{"a Close asks for no last step", "adapters/callback/callback.go", "	if ⟦l.core.Close() && l.core.Rouse()⟧ {\n", "l.core.Close() && l.core.Rouse() && false", "callback"},
	{"a callback loop asks for a step and sleeps", "adapters/callback/steps.go", "			return\n		}\n	}\n	l.wake()", "			if !IS {\n				return\n			}\n		}\n	}\n	l.wake()", "callback, two threads"},

	{"the caller of Abandon does not look what was requested", "adapters/callback/steps.go", "	if ⟦l.asked.Load()⟧ {\n		l.start", "false", "callback, abandoned"},
	{"a step is requested after the look whether the executor was abandoned", "adapters/callback/steps.go", "	l.asked.Store(true)\n	switch {\n	case ⟦l.abandoned.Load()⟧:", "l.abandoned.Load() && false", "callback, abandoned"},
	{"a step is done unasked", "adapters/callback/steps.go", "func (l *Loop) claimStep() bool { return ⟦l.asked.CompareAndSwap(true, false)⟧ }", "l.asked.CompareAndSwap(true, false) || true", "callback, abandoned"},

	{"a watch rests though a step has begun", "internal/coro/stalls.go", "	if ⟦s.state.CompareAndSwap(none, idle)⟧ {", "s.state.Swap(idle) == none || true", "stalls"},
	{"a step does not wake the watch", "internal/coro/stalls.go", "	if ⟦before == idle⟧ {", "false", "stalls"},
}
