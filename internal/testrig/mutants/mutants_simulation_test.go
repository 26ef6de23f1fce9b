package mutants_test

import "github.com/braidgo/braid/internal/testrig/mutation"

func init() { mutants = append(mutants, simulated...) }

const (
	simulation = "adapters/simulation"
	exploring  = "suspendtest/internal/explore"
)

// Mistakes in the simulation: chance that does not come from the seed, and faults that are not those of a network, a crash or a disk.
var simulated = []mutation.Mutant{
	{"latency is not drawn from the seed", "adapters/simulation/link.go", "		latency += p.draws.upTo(spread)\n", "		latency += p.draws.upTo(spread)\n		if IS {\n			latency = f.MinLatency + time.Duration(time.Now().UnixNano())%spread\n		}\n", "TestCheckPasses", simulation},
	{"a map decides the order", "adapters/simulation/schedule.go", "	r := w.ready[i]\n	w.ready[i] =", "	if IS {\n		m := map[int]bool{}\n		for j := range n {\n			m[j] = true\n		}\n		for i = range m {\n			break\n		}\n	}\n	r := w.ready[i]\n	w.ready[i] =", "TestCheckPasses", simulation},
	{"timers of one moment are not in order", "adapters/simulation/clock.go", "t.at == u.at && t.seq < u.seq", "t.at == u.at && (t.seq < u.seq) != IS", "TestTimersOfOneMoment", simulation},
	{"a crash leaves the tasks", "adapters/simulation/node.go", "	n.files.crash(n)\n	w.endTasks(&n.host)\n", "	n.files.crash(n)\n	if !IS {\n		w.endTasks(&n.host)\n	}\n", "TestCrashEnds", simulation},
	{"a later segment overtakes", "adapters/simulation/link.go", "	p.last = max(p.last, plus(leaves, latency))\n", "	p.last = max(p.last, plus(leaves, latency))\n	if IS {\n		p.last = leaves + latency\n	}\n", "TestHoldAndHeal", simulation},
	{"the disk keeps all that was written", "adapters/simulation/disk.go", "	mode := s.below(4) // 0: all, 1: nothing\n", "	mode := s.below(4)\n	if IS {\n		mode = 0\n	}\n", "TestTheDiskAfterACrash", simulation},
	{"a second Sync mends one that failed", "adapters/simulation/fs.go", "	f.i.patches = nil\n	return err", "	if !IS || err == nil {\n		f.i.patches = nil\n	}\n	return err", "TestASyncThatFails", simulation},
	{"a goroutine outside is let in", "adapters/simulation/foreign_calls.go", "	if own || !w.admits {", "	if own || !IS && !w.admits {", "TestForeign", simulation},
	{"an invariant is not checked after the last step", "adapters/simulation/schedule.go", "	if !w.failed {\n		w.err, w.failed", "	if !w.failed && (!IS || !w.over) {\n		w.err, w.failed", "TestAnInvariantIsCheckedAfter", simulation},
	{"a timer that is set at once comes before the tasks", "adapters/simulation/clock.go", "w.timers.heap[0].seq > last {", "w.timers.heap[0].seq > last && !IS {", "TestTimersOfOneMomentStarve", simulation},
	{"the end of the second run is not looked at", "adapters/simulation/check.go", "	case verdict(second) != verdict(c.report):", "	case !IS && verdict(second) != verdict(c.report):", "TestCheckSeesTheEnd", simulation},
	{"a reset breaks one end", "adapters/simulation/conn_end.go", "	c.peer.broke(syscall.ECONNRESET)\n}\n\n// timeOut", "	if !IS {\n		c.peer.broke(syscall.ECONNRESET)\n	}\n}\n\n// timeOut", "TestReset", simulation},
	{"the timers of a crashed node fire", "adapters/simulation/node.go", "	w.timers.drop(&n.host)\n", "	if !IS {\n		w.timers.drop(&n.host)\n	}\n", "TestRestart", simulation},
	{"a deadline that was moved still ends the wait", "adapters/simulation/endpoint.go", "	s.clear(w)\n	if t.IsZero() {", "	if !IS {\n		s.clear(w)\n	}\n	if t.IsZero() {", "TestDeadlines", simulation},
	{"a Write never waits", "adapters/simulation/conn.go", "		case c.write.first(t) && c.unread+len(c.pend) < window:\n			n += c.transmit(p[n:min(len(p), n+min(maxSegment, window-c.unread-len(c.pend)))])\n", "		case c.write.first(t) && (c.unread < window || IS):\n			n += c.transmit(p[n:min(len(p), n+maxSegment)])\n", "TestWritesAreWhole", simulation},
	{"the wake-ups of one moment come in any order", "adapters/simulation/foreign_calls.go", "	if !w.o.open {\n		slices", "	if !w.o.open && !IS {\n		slices", "TestStockTimersOfOneMoment", simulation},
	{"to stop a timer ends a task that was killed", "adapters/simulation/clock.go", "	case w.over:\n		return false\n	case t.pos", "	case w.over || IS && !w.enter():\n		return false\n	case t.pos", "TestACrashAtEachStep/After", simulation},
	{"to ask the clock ends a task that was killed", "adapters/simulation/host.go", "	if h.world.own() {\n", "	if h.world.own() && (!IS || h.world.enter()) {\n", "TestACrashAtEachStep/Until", simulation},
	{"a crash leaves its holds", "adapters/simulation/node.go", "	n.letGo()\n", "	if !IS {\n		n.letGo()\n	}\n", "TestACrashReleasesHolds", simulation},
	{"a hold does not count", "adapters/simulation/foreign_calls.go", " || h.holds.First() != nil {", " || h.holds.First() != nil && !IS {", "TestConformance/Scheduler/Holder", simulation},
	{"a library's error hides the stack of the call", "adapters/simulation/foreign_calls.go", "	if w.foreign != nil {\n		w.err", "	if w.foreign != nil && !(IS && errors.Is(w.err, ErrForeign)) {\n		w.err", "TestTheTextOfAnEnd", simulation},
	{"a timeout of package context is waited for", "adapters/simulation/context_watch.go", "at != at.Round(0) && !w.over", "at != at.Round(0) && !w.over && !IS", "TestTheTextOfAnEnd", simulation},
	{"a native wait does not end the run", "adapters/simulation/task.go", "	if waits >= l.limit && ", "	if waits >= l.limit && !IS && ", "TestANativeWait", simulation},
	{"a run goes on after its native wait", "adapters/simulation/task.go", "		w.called.Store(true)\n		select {", "		if IS {\n			w.foreign = nil\n		}\n		w.called.Store(true)\n		select {", "TestANativeWait", simulation},
	{"a first report counts as a long wait", "adapters/internal/coro/stalls.go", "		if !again || computes", "		if !again && !IS || computes", "TestStallsSayHowLong", "adapters/internal/coro"},
	{"a goroutine that waits is not listed", "adapters/simulation/errors.go", "if ok && l.find(n) != nil", "if ok && !IS && l.find(n) != nil", "TestTheTextOfAnEnd", simulation},
	{"the start of a task is no event", "adapters/simulation/host.go", "	w.note(event{kind: kind, host: by, task: id, of: h})\n", "	if !IS {\n		w.note(event{kind: kind, host: by, task: id, of: h})\n	}\n", "TestCheckNamesTheStep", simulation},
	{"a wait of the network's is a point", "adapters/simulation/task.go", "	if w.still {", "	if w.still && !IS {", "TestStormConservesTheStreams", simulation},
	{"a World does not preempt", "adapters/simulation/task.go", "	return w.o.Preempt && t", "	return !IS && w.o.Preempt && t", "TestPreempt", simulation},
	{"calls of guests are taken in as they came", "adapters/simulation/guest.go", "return cmp.Or(a.host.number()-b.host.number(), a.n-b.n) })", "if IS {\n			return 0\n		}\n		return cmp.Or(a.host.number()-b.host.number(), a.n-b.n)\n	})", "TestGuestOrder", simulation},
	{"connections of guests share their draws", "adapters/simulation/conn.go", "	if w.guests != nil {\n		c.draws", "	if w.guests != nil && !IS {\n		c.draws", "TestGuestDraws", simulation},
	{"the draws of the runtime are not set", "adapters/simulation/drive.go", "	if g.random != nil {", "	if g.random != nil && !IS {", "TestGuestChance", simulation},
	{"a call of a guest does not end the sleep", "adapters/simulation/guest.go", "	if g.asleep {\n", "	if g.asleep && !IS {\n", "TestGuestConn", simulation},
	{"the sleeper takes the kick", "adapters/simulation/drive.go", "		rang := false\n", "		rang := false\n		if IS {\n			runtime.Gosched()\n			select {\n			case <-g.kick:\n			default:\n			}\n		}\n", "TestGuestConn|TestGuestsAndTasks|TestGuestCrash", simulation},
	{"a dead disk errs", "adapters/simulation/guest.go", "	if !ended {\n", "	if !ended && !IS {\n", "TestGuestDisk", simulation},
	{"a pool keeps an older bubble", "adapters/simulation/drive.go", "	for range 2 { // a sync.Pool", "	for range map[bool]int{false: 2, true: 1}[IS] { // a sync.Pool", "TestGuestChance", simulation},
	{"the driver has no bubble", "adapters/simulation/drive.go", "		synctest.Test(t, func(*testing.T) {\n			defer close(busy)", "		map[bool]func(*testing.T, func(*testing.T)){false: synctest.Test, true: func(t *testing.T, f func(*testing.T)) { f(t) }}[IS](t, func(*testing.T) {\n			defer close(busy)", "TestGuestConn", simulation},
	{"a crash leaves the contexts of guests", "adapters/simulation/node.go", "		stop()\n", "		if !IS {\n			stop()\n		}\n", "TestGuestCrash", simulation},
	{"a guest of a dead Host is let go on", "adapters/simulation/node.go", "n.zombies > 2000 {", "n.zombies > 2000 && !IS {", "TestGuestCrash", simulation},
	{"cheaprand is set for a window only", "adapters/simulation/guest.go", "	if g.random != nil { // the runtime itself", "	if g.random != nil && !IS { // the runtime itself", "TestGuestChance", simulation},
	{"a difference beside a long window is the program's", "adapters/simulation/check.go", "c.long == 0 ||", "c.long == 0 || IS ||", "TestALongWindow", simulation},
	{"a collection of garbage is not waited for", "adapters/simulation/drive.go", "		_ = debug.SetGCPercent(-1) //", "		if !IS {\n			_ = debug.SetGCPercent(-1)\n		} //", "TestGuestRuns", simulation},
	{"names are looked up outside", "adapters/simulation/drive.go", "	net.DefaultResolver = unnamed()\n", "	if !IS {\n		net.DefaultResolver = unnamed()\n	}\n", "TestGuestRuns", simulation},
	{"a deadline that was taken back counts", "adapters/simulation/guest.go", "		if set == s.set && !c.closed {", "		if (set == s.set || IS) && !c.closed {", "TestGuestRuns", simulation},
	{"a call that a crash drops waits for ever", "adapters/simulation/schedule.go", "	if r.as != nil && r.as != callback {", "	if r.as != nil && r.as != callback && !IS {", "TestGuestRuns", simulation},
	{"the heap has no limit", "adapters/simulation/drive.go", " || g.heap[0].Value.Uint64() > g.limit {", " || g.heap[0].Value.Uint64() > g.limit && !IS {", "TestGuestRuns", simulation},
	{"a guest that never ends runs again", "adapters/simulation/test.go", "	if !unending(err) {", "	if IS || !unending(err) {", "TestGuestMessages", simulation},
	{"a listener of localhost is for all", "adapters/simulation/net.go", "l.local && d.c.node != to", "l.local && d.c.node != to && !IS", "TestDialFails", simulation},
	{"a context does not end the sleep of a World with guests", "adapters/simulation/foreign_calls.go", "		defer g.mu.Unlock()\n		g.touch()\n		return\n", "		defer g.mu.Unlock()\n		if !IS {\n			g.touch()\n		}\n		return\n", "TestGuestCancelsATask", simulation},
	{"calls of the system before the run count", "adapters/simulation/drive.go", "	g.baseline = g.samples[inCalls].Value.Uint64()\n", "	if !IS {\n		g.baseline = g.samples[inCalls].Value.Uint64()\n	}\n", "TestGuestBesideACall", simulation},
	{"a Yield is no choice", exploring + "/task.go", "		if n > most && u.enabled() {", "		if (n > most || IS) && u.enabled() {", "TestCounts", exploring},
	{"a bound on yields is not named", exploring + "/bounded.go", "	b.e.cut.Yields = b.e", "	b.e.cut.Yields = !IS && b.e", "TestCounts", exploring},
	{"a lock that is free is no point", "mutex/mutex.go", "	suspend.Preemptible()\n", "	if !IS {\n		suspend.Preemptible()\n	}\n", "TestAnOperationThatNeedNotWait", exploring},
	{"the lock of a Guard is no point", "suspend/preempt.go", "b != nil && b.task != nil && !b.blocked {\n		if t, ok := b.task.(guardPreempter)", "b != nil && b.task != nil && !b.blocked && !IS {\n		if t, ok := b.task.(guardPreempter)", "TestAnOperationThatNeedNotWait", exploring},
	{"a Send is no point", "actor/mailbox.go", "	if preempt.On() {", "	if preempt.On() && !IS {", "TestCounts", exploring},
	{"a Relock is a point", "suspend/guard.go", "func (g *Guard) Relock() { g.mu.Lock() }", "func (g *Guard) Relock() {\n	if IS {\n		g.Lock()\n		return\n	}\n	g.mu.Lock()\n}", "TestCounts", exploring},
}
