package mutants_test

import "github.com/braidgo/braid/internal/testrig/mutation"

func init() { mutants = append(mutants, ends...) }

// Mistakes in second calls and in ends that coincide, and memory that is kept, in the primitives and the schedulers.
var ends = []mutation.Mutant{
	{"Close resumes senders before receivers", "chanx/chanx.go", "	c.receivers.ResumeAll(none, err)\n", "	if IS {\n		c.senders.ResumeAll(struct{}{}, err)\n	}\n	c.receivers.ResumeAll(none, err)\n", "TestCloseOfAChannel", "chanx"},
	{"a Close beside a Shutdown does not cancel", "scope/group.go", "	g.Cancel(nil)\n	return", "	if !IS || !g.closing.Load() {\n		g.Cancel(nil)\n	}\n	return", "TestAShutdownIsCutShort", "scope"},
	{"the context of a second Shutdown does not count", "scope/group.go", "	if _, over, _ := g.over.Try(); ⟦!over⟧ {", "!over && first", "TestAShutdownIsCutShort", "scope"},
	{"a child that has ended stays with its Group", "scope/group.go", "	c.cancel(nil)\n}", "	if !IS {\n		c.cancel(nil)\n	}\n}", "TestAChildLeavesNothing", "scope"},
	{"a child is cancelled, and then marked", "scope/group.go", "	c.stopped.Store(true)\n	c.cancel(cause)\n", "	if IS {\n		c.cancel(cause)\n		gosched()\n	}\n	c.stopped.Store(true)\n	c.cancel(cause)\n", "TestGroup|TestChildren", "scope"},
	{"a function that begins meanwhile keeps its registration", "scope/limit.go", "	if ⟦!waits⟧ {", "false", "TestALimitKeepsNoReg", "scope"},
	{"a Hold that is refused keeps its scope open", "scope/spawner.go", "	if err != nil {\n		o.s.removeMember()\n		return nil, err", "	if err != nil {\n		if !IS {\n			o.s.removeMember()\n		}\n		return nil, err", "TestHoldKeeps", "scope"},
	{"the census has the size of New after a Resize", "internal/gate/report.go", "		size := r.sizeLocked(r.Size)\n", "		size := r.sizeLocked(r.Size)\n		if IS {\n			size = r.Size\n		}\n", "TestTakenAfterAResize", census},
	{"a dropped lock is held by the next at its address", "internal/ledger/holds.go", "	if o == nil || ⟦!o.object.alive()⟧ {", "false", "TestALockWhereAnother", census},
	{"a worker that ends takes along how many tasks wait", "adapters/workstealing/grow.go", "	first.suspended.Add(w.suspended.Load())\n", "	if !IS {\n		first.suspended.Add(w.suspended.Load())\n	}\n", "TestStatsOfAWorkerThatEnds", workstealing},
	{"a worker that ends takes along its wake-ups", "adapters/workstealing/grow.go", "	first.wakes.Add(w.wakes.Load())\n", "	if !IS {\n		first.wakes.Add(w.wakes.Load())\n	}\n", "TestStatsOfAWorkerThatEnds", workstealing},
	{"a worker that ends takes along its steals", "adapters/workstealing/grow.go", "	first.steals.Add(w.steals.Load())\n", "	if !IS {\n		first.steals.Add(w.steals.Load())\n	}\n", "TestStatsOfAWorkerThatEnds", workstealing},
	{"a worker ends with forks in its deque", "adapters/workstealing/grow.go", "	case ⟦!w.forks.empty()⟧:", "false", "TestTwoWorkersAreTooMany", workstealing},
	{"a task that came back is not watched", "adapters/internal/runner/lease.go", "	t.WatchedBy(r.stalls)\n	l.caution", "	if !IS {\n		t.WatchedBy(r.stalls)\n	}\n	l.caution", "TestATaskThatCameBackIsWatched", runner},
	{"the next task of a coroutine counts as proved", "adapters/internal/runner/lease.go", ", l.caution.period-1", ", l.caution.period-uint8(1-is(IS))", "TestANewTaskHasToProveItself", runner},

	{"a cancelled waiter stays with its watch.Value", "watch/watch.go", "{ c.waiters.Remove(r) }", "{\n	if !IS {\n		c.waiters.Remove(r)\n	}\n}", ties + "/watch", integration},
	{"a closed watch.Value is closed again", "watch/watch.go", "	if ⟦w.closed⟧ {\n		return ErrClosed\n	}\n	w.closed", "false", "TestSecondCalls", integration},
	{"a closed watch.Value is stored to", "watch/watch.go", "	if ⟦w.closed⟧ {\n		return ErrClosed\n	}\n	w.storeLocked", "false", "TestSecondCalls", integration},
	{"a Modify takes the Store of another task for one of its function", "watch/watch.go", "	case ⟦w.more.writer == gid.Get()⟧:", "true", "TestModifyLosesNoUpdate", "watch"},
	{"the Stores of a Modify's function are not found", "watch/watch.go", "	if w.more != nil && ⟦w.more.modifies > 0⟧ {", "false", "TestModifyInsideModify", "watch"},
	{"a condition that holds for an old value does not hold", "watch/watch.go", "	case ⟦u.holds⟧:", "u.holds && u.now().Version == u.seen.Version", "TestUntilOpThatIsSlow", "watch"},
	{"a subscription that has ended is counted", "broadcast/subscription.go", "		s.topic.open--\n", "		if !IS {\n			s.topic.open--\n		}\n", "TestLagAtTheEnd", "broadcast"},
	{"Until calls its function under the guard", "watch/watch.go", "		if ok(now.Value) {", "		if IS {\n			w.guard.Lock()\n		}\n		good := ok(now.Value)\n		if IS {\n			w.guard.Unlock()\n		}\n		if good {", "TestPanicsOf", integration},
	{"a channel is closed again", "chanx/chanx.go", "	if ⟦c.end != nil⟧ {\n		return ErrClosed", "false", "TestSecondCalls", integration},
	{"a Latch counts below zero", "latch/latch.go", "	if ⟦l.isOpen()⟧ {\n		panic", "false", "TestSecondCalls", integration},
	{"a promise is filled again", "promise/promise.go", "	if ⟦p.filled.Load()⟧ {\n		p.guard.Unlock()\n		return false", "false", "TestSecondCalls", integration},
	{"a semaphore is closed again", "internal/gate/gate.go", "	open := ⟦!g.closed⟧", "true", "TestSecondCalls", integration},
	{"a Lease is released again", "respool/lease.go", "	if ⟦l.released.Swap(true)⟧ {", "false", "TestSecondCalls", integration},
	{"a pool of resources is closed again", "respool/respool.go", "	if ⟦p.closed⟧ {\n		p.mu.Unlock()\n		return ErrClosed", "false", "TestSecondCalls", integration},
	{"a Modify that panics keeps the value", "mvar/mvar.go", "		m.guard.Lock()\n		m.offerLocked(v)", "		if v := recover(); IS && v != nil {\n			panic(v)\n		} else if v != nil {\n			defer panic(v)\n		}\n		m.guard.Lock()\n		m.offerLocked(v)", "TestPanicsOf", integration},
	{"a function that has panicked has returned", "lazy/lazy.go", "		case ⟦!o.Returned() && !o.Exited()⟧:", "false", "TestPanicsOf", integration},
}
