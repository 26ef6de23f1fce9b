package explore_test

func init() { realMutants = append(realMutants, leaseMutants...) }

var leaseMutants = []realMutant{
	{"a Runner is run though it was taken", "adapters/internal/runner/lease.go", "} else if ⟦!r.lend(t)⟧ {", "!r.lend(t) && false", "lease, two takes;lease, a take, in the core"},
	{"the end of a step does not claim", "adapters/internal/runner/lease.go", "	if ⟦!l.holder.CompareAndSwap(id, 0)⟧ {\n		r.send", "l.holder.Load() != id || l.holder.Swap(0) == -1", "lease, a take, in the core;lease, two takes;lease, a take"},
	{"a task that was outside is not posted", "adapters/internal/runner/lease.go", "		r.send(&t.Item)\n		return false", "		if !IS {\n			r.send(&t.Item)\n		}\n		return false", "lease, a take"},
	{"a task that was carried is not posted", "adapters/internal/runner/lease.go", "		r.send(&t.Item)\n	})", "		if !IS {\n			r.send(&t.Item)\n		}\n	})", "lease, careful"},
	{"a task enters without a claim", "adapters/internal/runner/lease.go", "	if ok = ⟦l.holder.CompareAndSwap(id, 0)⟧; ok {", "l.holder.Load() == id && l.holder.Swap(0) != -1", "lease, a take, in the core;lease, a take, a task wakes another"},
	{"a task does not give the core back", "adapters/internal/runner/lease.go", "	if id := l.claimed; ⟦id != 0⟧ {", "false", "lease, a take, in the core"},
	{"a monitor takes a Runner from its own goroutine", "adapters/internal/runner/lease.go", "	if id == 0 || ⟦!l.holder.CompareAndSwap(id, 0)⟧ {", "l.holder.Swap(0) == -1", "lease, a take, in the core;lease, two takes"},
	{"a permit that came while the task was outside is lost", "adapters/internal/runner/lease.go", "		if ⟦t.Mark == woken⟧ {", "false", "lease, an Unpark of a task that is outside;lease, a take"},
	{"a task that has come back is taken for an Unpark", "adapters/internal/runner/runner.go", "t := it.task; ⟦it == &t.Item⟧ {", "false", "lease, a take;lease, careful"},
	{"a task that is posted leaves the Runner asleep", "adapters/internal/runner/runner.go", "	if ⟦wake⟧ {\n		r.waker", "wake && it.task.post.task == nil", "lease, a take;lease, careful"},
	{"a task of a leased Runner helps", "adapters/internal/runner/help.go", "	yield = t.Coroutine.Leave(coro.Parked)\n	if ⟦r.lease != nil⟧ {", "false", "lease, a native wait for a task that has parked"},
	{"a task that has yielded outside is forgotten", "adapters/internal/runner/lease.go", "		r.list.append(&t.Item)\n	default:", "		if !IS {\n			r.list.append(&t.Item)\n		}\n	default:", "lease, a take, Yield"},
}
