//go:build mutants

package mutants_test

func init() { mutants = append(mutants, simulated...) }

const (
	simulation = "adapters/simulation"
	exploring  = "suspendtest/internal/explore"
)

// Mistakes in the simulation: chance that does not come from the seed, and faults that are not those of a network, a crash or a disk.
var simulated = []mutant{
	{"latency is not drawn from the seed", "adapters/simulation/link.go", "		latency += p.draws.upTo(spread)\n", "		latency += p.draws.upTo(spread)\n		if Wrong {\n			latency = f.MinLatency + time.Duration(time.Now().UnixNano())%spread\n		}\n", simulation, "TestCheckPasses"},
	{"a map decides the order", "adapters/simulation/schedule.go", "	r := w.ready[i]\n	w.ready[i] =", "	if Wrong {\n		m := map[int]bool{}\n		for j := range n {\n			m[j] = true\n		}\n		for i = range m {\n			break\n		}\n	}\n	r := w.ready[i]\n	w.ready[i] =", simulation, "TestCheckPasses"},
	{"timers of one moment are not in order", "adapters/simulation/clock.go", "t.at == u.at && t.seq < u.seq", "t.at == u.at && (t.seq < u.seq) != Wrong", simulation, "TestTimersOfOneMoment"},
	{"a crash leaves the tasks", "adapters/simulation/node.go", "	n.files.crash(n)\n	w.endTasks(&n.host)\n", "	n.files.crash(n)\n	if !Wrong {\n		w.endTasks(&n.host)\n	}\n", simulation, "TestCrashEnds"},
	{"a later segment overtakes", "adapters/simulation/link.go", "	p.last = max(p.last, plus(leaves, latency))\n", "	p.last = max(p.last, plus(leaves, latency))\n	if Wrong {\n		p.last = leaves + latency\n	}\n", simulation, "TestHoldAndHeal"},
	{"the disk keeps all that was written", "adapters/simulation/disk.go", "	mode := s.below(4) // 0: all, 1: nothing\n", "	mode := s.below(4)\n	if Wrong {\n		mode = 0\n	}\n", simulation, "TestTheDiskAfterACrash"},
	{"a second Sync mends one that failed", "adapters/simulation/fs.go", "	f.i.patches = nil\n	return err", "	if !Wrong || err == nil {\n		f.i.patches = nil\n	}\n	return err", simulation, "TestASyncThatFails"},
	{"a goroutine outside is let in", "adapters/simulation/foreign_calls.go", "	if own || !w.admits {", "	if own || !Wrong && !w.admits {", simulation, "TestForeign"},
	{"an invariant is not checked after the last step", "adapters/simulation/schedule.go", "	if !w.failed {\n		w.err, w.failed", "	if !w.failed && (!Wrong || !w.over) {\n		w.err, w.failed", simulation, "TestAnInvariantIsCheckedAfter"},
	{"a timer that is set at once comes before the tasks", "adapters/simulation/clock.go", "w.timers.heap[0].seq > last {", "w.timers.heap[0].seq > last && !Wrong {", simulation, "TestTimersOfOneMomentStarve"},
	{"the end of the second run is not looked at", "adapters/simulation/check.go", "	case verdict(second) != verdict(c.report):", "	case !Wrong && verdict(second) != verdict(c.report):", simulation, "TestCheckSeesTheEnd"},
	{"a reset breaks one end", "adapters/simulation/conn_end.go", "	c.peer.broke(syscall.ECONNRESET)\n}\n\n// timeOut", "	if !Wrong {\n		c.peer.broke(syscall.ECONNRESET)\n	}\n}\n\n// timeOut", simulation, "TestReset"},
	{"the timers of a crashed node fire", "adapters/simulation/node.go", "	w.timers.drop(&n.host)\n", "	if !Wrong {\n		w.timers.drop(&n.host)\n	}\n", simulation, "TestRestart"},
	{"a deadline that was moved still ends the wait", "adapters/simulation/endpoint.go", "	s.clear(w)\n	if t.IsZero() {", "	if !Wrong {\n		s.clear(w)\n	}\n	if t.IsZero() {", simulation, "TestDeadlines"},
	{"a Write never waits", "adapters/simulation/conn.go", "		case c.write.first(t) && c.unread+len(c.pend) < window:\n			n += c.transmit(p[n:min(len(p), n+min(maxSegment, window-c.unread-len(c.pend)))])\n", "		case c.write.first(t) && (c.unread < window || Wrong):\n			n += c.transmit(p[n:min(len(p), n+maxSegment)])\n", simulation, "TestWritesAreWhole"},
	{"the wake-ups of one moment come in any order", "adapters/simulation/foreign_calls.go", "	if !w.o.open {\n		slices", "	if !w.o.open && !Wrong {\n		slices", simulation, "TestStockTimersOfOneMoment"},
	{"to stop a timer ends a task that was killed", "adapters/simulation/clock.go", "	case w.over:\n		return false\n	case t.pos", "	case w.over || Wrong && !w.enter():\n		return false\n	case t.pos", simulation, "TestACrashAtEachStep/After"},
	{"to ask the clock ends a task that was killed", "adapters/simulation/host.go", "	if h.world.own() {\n", "	if h.world.own() && (!Wrong || h.world.enter()) {\n", simulation, "TestACrashAtEachStep/Until"},
	{"a crash leaves its holds", "adapters/simulation/node.go", "	n.letGo()\n", "	if !Wrong {\n		n.letGo()\n	}\n", simulation, "TestACrashReleasesHolds"},
	{"a hold does not count", "adapters/simulation/foreign_calls.go", " || h.holds.First() != nil {", " || h.holds.First() != nil && !Wrong {", simulation, "TestConformance/Scheduler/Holder"},
	{"a library's error hides the stack of the call", "adapters/simulation/foreign_calls.go", "	if w.foreign != nil {\n		w.err", "	if w.foreign != nil && !(Wrong && errors.Is(w.err, ErrForeign)) {\n		w.err", simulation, "TestTheTextOfAnEnd"},
	{"a timeout of package context is waited for", "adapters/simulation/context_watch.go", "at != at.Round(0) && !w.over", "at != at.Round(0) && !w.over && !Wrong", simulation, "TestTheTextOfAnEnd"},
	{"a goroutine that waits is not listed", "adapters/simulation/errors.go", "if ok && l.find(n) != nil", "if ok && !Wrong && l.find(n) != nil", simulation, "TestTheTextOfAnEnd"},
	{"the start of a task is no event", "adapters/simulation/host.go", "	w.note(event{kind: kind, host: by, task: id, of: h})\n", "	if !Wrong {\n		w.note(event{kind: kind, host: by, task: id, of: h})\n	}\n", simulation, "TestCheckNamesTheStep"},
	{"a wait of the network's is a point", "adapters/simulation/task.go", "	if w.still {", "	if w.still && !Wrong {", simulation, "TestStormConservesTheStreams"},
	{"a World does not preempt", "adapters/simulation/task.go", "	return w.o.Preempt && t", "	return !Wrong && w.o.Preempt && t", simulation, "TestPreempt"},
	{"calls of guests are taken in as they came", "adapters/simulation/guest.go", "return cmp.Or(a.host.number()-b.host.number(), a.n-b.n) })", "if Wrong {\n			return 0\n		}\n		return cmp.Or(a.host.number()-b.host.number(), a.n-b.n)\n	})", simulation, "TestGuestOrder"},
	{"connections of guests share their draws", "adapters/simulation/conn.go", "	if w.guests != nil {\n		c.draws", "	if w.guests != nil && !Wrong {\n		c.draws", simulation, "TestGuestDraws"},
	{"the draws of the runtime are not set", "adapters/simulation/drive.go", "	if g.random != nil {", "	if g.random != nil && !Wrong {", simulation, "TestGuestChance"},
	{"a call of a guest does not end the sleep", "adapters/simulation/guest.go", "	if g.asleep {\n", "	if g.asleep && !Wrong {\n", simulation, "TestGuestConn"},
	{"the sleeper takes the kick", "adapters/simulation/drive.go", "		rang := false\n", "		rang := false\n		if Wrong {\n			runtime.Gosched()\n			select {\n			case <-g.kick:\n			default:\n			}\n		}\n", simulation, "TestGuestConn|TestGuestsAndTasks|TestGuestCrash"},
	{"a dead disk errs", "adapters/simulation/guest.go", "	if !ended {\n", "	if !ended && !Wrong {\n", simulation, "TestGuestDisk"},
	{"a pool keeps an older bubble", "adapters/simulation/drive.go", "	for range 2 { // a sync.Pool", "	for range map[bool]int{false: 2, true: 1}[Wrong] { // a sync.Pool", simulation, "TestGuestChance"},
	{"the driver has no bubble", "adapters/simulation/drive.go", "		synctest.Test(t, func(*testing.T) {\n			defer close(busy)", "		map[bool]func(*testing.T, func(*testing.T)){false: synctest.Test, true: func(t *testing.T, f func(*testing.T)) { f(t) }}[Wrong](t, func(*testing.T) {\n			defer close(busy)", simulation, "TestGuestConn"},
	{"a crash leaves the contexts of guests", "adapters/simulation/node.go", "		stop()\n", "		if !Wrong {\n			stop()\n		}\n", simulation, "TestGuestCrash"},
	{"a guest of a dead Host is let go on", "adapters/simulation/node.go", "n.zombies > 2000 {", "n.zombies > 2000 && !Wrong {", simulation, "TestGuestCrash"},
	{"calls of the system before the run count", "adapters/simulation/drive.go", "	g.baseline = g.samples[inCalls].Value.Uint64()\n", "	if !Wrong {\n		g.baseline = g.samples[inCalls].Value.Uint64()\n	}\n", simulation, "TestGuestBesideACall"},
	{"a Yield is no choice", exploring + "/task.go", "		if n > most && u.enabled() {", "		if (n > most || Wrong) && u.enabled() {", exploring, "TestCounts"},
	{"a bound on yields is not named", exploring + "/bounded.go", "	b.e.cut.Yields = b.e", "	b.e.cut.Yields = !Wrong && b.e", exploring, "TestCounts"},
	{"a bound on preemptions is not named", exploring + "/bounded.go", "	b.e.cut.Preemptions = b.e", "	b.e.cut.Preemptions = !Wrong && b.e", exploring, "TestCounts"},
	{"a lock that is free is no point", "mutex/mutex.go", "	suspend.Preemptible()\n", "	if !Wrong {\n		suspend.Preemptible()\n	}\n", exploring, "TestAnOperationThatNeedNotWait"},
	{"the lock of a Guard is no point", "suspend/preempt.go", "b != nil && b.task != nil && !b.blocked {\n		if t, ok := b.task.(guardPreempter)", "b != nil && b.task != nil && !b.blocked && !Wrong {\n		if t, ok := b.task.(guardPreempter)", exploring, "TestAnOperationThatNeedNotWait"},
}
