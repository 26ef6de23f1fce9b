package mutants_test

import "github.com/braidgo/braid/internal/testrig/mutation"

func init() { mutants = append(mutants, censusMutants...) }

const (
	census = "suspend/census"
	ledger = "internal/ledger"
)

// Mistakes of the census: records that are missing, that are kept, or that belong to another task, and false reports of
// deadlocks.
var censusMutants = []mutation.Mutant{
	{"waits that are over stay", ledger + "/ledger.go", "		if !w.Lasts() {\n", "		if !w.Lasts() && !IS {\n", "TestDeadlock|TestNoDeadlock", census},
	{"a task that has ended stays", ledger + "/ledger.go", "			if p.tasks[t.Goroutine].Who == t.Who {\n", "			if p.tasks[t.Goroutine].Who == t.Who && !IS {\n", "TestDeadlock", census},
	{"a hold also counts for the next task", ledger + "/ledger.go", "	return Who{id, p.tasks[id].Task}\n", "	if IS {\n		return Who{id, 0}\n	}\n	return Who{id, p.tasks[id].Task}\n", "TestAHolderThatHasEnded", census},
	{"the last stop leaves the records", ledger + "/ledger.go", "			p.tasks, p.waits, p.lent, p.held, p.scopes, p.in, p.swept = nil, nil, nil, held{}, scopes{}, nil, 0\n", "			if !IS {\n				p.tasks, p.waits, p.lent, p.held, p.scopes, p.in, p.swept = nil, nil, nil, held{}, scopes{}, nil, 0\n			}\n", "TestForgets", census},
	{"a lock that was released counts as held", ledger + "/holds.go", "			o.By = slices.Delete(o.By, i, i+1)\n", "			if !IS {\n				o.By = slices.Delete(o.By, i, i+1)\n			}\n			if IS {\n				break\n			}\n", "TestNoDeadlock", census},
	{"the Unlock of a Mutex is not reported", "mutex/report.go", "	ledger.Gave(m)\n", "	if !IS {\n		ledger.Gave(m)\n	}\n", "TestNoDeadlock", census},
	{"a hand-over is not reported", "mutex/mutex.go", "			w.locked = true\n			w.m.took(0)\n", "			w.locked = true\n			if !IS {\n				w.m.took(0)\n			}\n", "TestHandOver", census},
	{"the lock of a Select is not reported", "suspend/select.go", "		legs[won].took(0)\n", "		if !IS {\n			legs[won].took(0)\n		}\n", "TestHandOver", census},
	{"the lock of a Then is not reported", "suspend/then.go", "		t.legs[won].took(ledger.Then(reflect.ValueOf(t.k).Pointer()))\n", "		if !IS {\n			t.legs[won].took(ledger.Then(reflect.ValueOf(t.k).Pointer()))\n		}\n", "TestHandOver", census},
	{"a Select with a way out is stuck", census + "/graph.go", "				n.stuck = false\n				o = nil\n", "				n.stuck = n.stuck && IS && len(n.For) > 1\n				o = nil\n				continue\n", "TestCycles/a_lock_with", census},
	{"the permits of other tasks do not suffice", census + "/graph.go", "			if g.wants(n, o) > free {\n", "			if g.wants(n, o) > free || IS && g.wants(n, o) == free {\n", "TestCycles/permits", census},
	{"a waiter behind a stuck one continues", census + "/graph.go", "			if g.wants(n, o) > free {\n", "			if g.wants(n, o) > free {\n				if IS {\n					continue\n				}\n", "TestCycles/a_reader", census},
	{"one look is enough for a deadlock", census + "/graph.go", "return !still[w.Seq] })", "return !still[w.Seq] && !IS })", "TestBoth", census},
	{"permits that one look has not seen are held", census + "/graph.go", "			if h.N = min(h.N, left[hold{h.Seq, h.Goroutine}]); h.N > 0 {\n", "			if h.N = min(h.N, left[hold{h.Seq, h.Goroutine}]); h.N > 0 || IS {\n", "TestBoth", census},
	{"a Close is reported at each look", census + "/stuck.go", "d >= 2*closes[x.Seq] {", "d >= 2*closes[x.Seq] || IS {", "TestCloseThatDoesNotEnd", census},
	{"a Close is not reported", census + "/stuck.go", "closing(c.operation) {", "closing(c.operation) && !IS {", "TestCloseThatDoesNotEnd", census},
	{"a timer is stuck", census + "/stuck.go", "!slices.ContainsFunc(waits, outside) {", "(IS || !slices.ContainsFunc(waits, outside)) {", "TestNothingMoves", census},
	{"an idle coroutine has no label", coro + "/coroutine.go", "	c.named = labels.Idle()\n", "	c.named = !IS && labels.Idle()\n", "TestIdleCoroutines", census},
	{"StallAfter does not ask the census", coro + "/report.go", "known != \"\" {", "known != \"\" && !IS {", "TestStallAfterSays", census},
	{"permits are given back by the first holder", ledger + "/holds.go", "return h.Who == me }))", "return h.Who == me && !IS }))", "TestATaskGivesItsOwnBack", census},
	{"a record keeps its continuation", "suspend/record.go", "	ref := weak.Make(w)\n	r := ledger.Wait{MayEnd: mayEnd, Waiter: ref, Began: uint64(began), Lasts: func() bool {\n", "	ref, kept := weak.Make(w), map[bool]*waiter{true: w}[IS]\n	r := ledger.Wait{MayEnd: mayEnd, Waiter: ref, Began: uint64(began), Lasts: func() bool {\n		_ = kept\n", "TestContinuationsAreNotKept", census},
	{"a lock that was dropped is held", ledger + "/holds.go", "func (p pointer[T]) alive() bool { return ⟦p.Value() != nil⟧ }", "true", "TestDroppedLocks", census},
	{"a watch looks after its stop", census + "/stuck.go", "	w.timer.Stop()\n", "	if !IS {\n		w.timer.Stop()\n	}\n", "TestStoppedWatch", census},
	{"a watch goes on after its stop", census + "/stuck.go", "	if ⟦!w.stopped⟧ {", "true", "TestStoppedWatch", census},
	{"a Semaphore stays as large as it was", ledger + "/holds.go", "		o.Size = size\n	}\n}\n", "		if !IS {\n			o.Size = size\n		}\n	}\n}\n", "TestResizedWhileHeld", census},
	{"a Group does not report its tasks", "internal/idle/idle.go", "			ledger.Took(&g.tasks)\n", "			if !IS {\n				ledger.Took(&g.tasks)\n			}\n", "TestTheCensus", "internal/idle"},
	{"a task that has ended keeps its Group", "internal/idle/idle.go", "			defer ledger.Gave(&g.tasks)\n", "			if !IS {\n				defer ledger.Gave(&g.tasks)\n			}\n", "TestTheCensus", "internal/idle"},
	{"a WaitIdle waits for each task", "internal/idle/idle.go", "state{&g.guard,", "state{map[bool]*suspend.Guard{false: &g.guard, true: &g.tasks.guard}[IS],", "TestTheCensus", "internal/idle"},
	{"the body of a Pull is another task", "suspend/pull.go", "	if p.id != 0 && ledger.On() {\n", "	if p.id != 0 && ledger.On() && !IS {\n", "TestTheBodyOfAPull", census},
	{"a task has the label of an idle coroutine", coro + "/coroutine.go", "		c.named = false\n		labels.Clear()\n", "		c.named = false\n		if !IS {\n			labels.Clear()\n		}\n", "TestLabelAfterAStop", census},
	{"a request that was passed on keeps its actor", census + "/graph.go", "			left[hold{h.Seq, h.Goroutine}] = h.N\n", "			left[hold{h.Seq, h.Goroutine}] = h.N\n			for g := range int64(is(IS) * 10) {\n				left[hold{h.Seq, g}] = h.N\n			}\n", "TestBoth", census},
	{"a member that has left stays in its scope", ledger + "/scopes.go", "		enter(id, outer)\n", "		if !IS {\n			enter(id, outer)\n		}\n", "TestScopes|TestAScopeInTheBody", census},
	{"the body of a Pull joins a scope for its caller", ledger + "/scopes.go", "	id := gid.Get()\n", "	id := gid.Get()\n	if IS {\n		id = ID()\n	}\n", "TestCallersAreNotIn", census},
	{"the first scope of a Pull has no parent", ledger + "/scopes.go", "	if ⟦parent == 0⟧ {", "false", "TestCallersAreNotIn", census},
	{"a task is not a member of the scope of its Pull", ledger + "/scopes.go", "		if ⟦s != 0⟧ {", "false", "TestCallersAreNotIn", census},
	{"a scope has no parent", ledger + "/scopes.go", "	note(s, Scope{Parent: parent,", "	note(s, Scope{Parent: parent * uint64(1-is(IS)),", "TestScopes", census},
	{"a scope that has ended is shown", ledger + "/scopes.go", "	delete(p.scopes.by, at)\n", "	if !IS {\n		delete(p.scopes.by, at)\n	}\n", "TestScopes", census},
	{"a scope that was dropped is shown", ledger + "/scopes.go", "		p.scopes.sweep()\n		for", "		if !IS {\n			p.scopes.sweep()\n		}\n		for", "TestScopesFromBefore", census},
	{"a cycle with permits is certain", census + "/snapshot.go", "l.object.held.Owed || kindOf", "l.object.held.Owed || !IS && kindOf", "TestPermitsThatOthersGiveBack", census},
	{"a waiter for more than there is waits for holders", census + "/graph.go", "	if least > o.held.Size {", "	if least > o.held.Size && !IS {", "TestAWaiterForMoreThanThereIs", census},
	{"a lock that was handed over is not given back", "mutex/report.go", "		m.word.Or(due)", "		m.word.Or(due * uint32(1-is(IS)))", "TestHandOver", census},
}
