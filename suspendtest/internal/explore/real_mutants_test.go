package explore_test

import (
	"testing"

	"github.com/braidgo/braid/internal/testrig/mutation"
)

// A realMutant is a mistake in production code. Its tests are the names of the programs that find it, separated by semicolons.
type realMutant = mutation.Mutant

var realMutants = []realMutant{
	{"a promise is not looked at again", "promise/promise.go", "return v, ⟦s.filled.Load()⟧, nil }", "false", "promise"},
	{"waiters are resumed, and then the promise is filled", "promise/promise.go",
		"	p.filled.Store(true)\n	p.waiters.ResumeAll(struct{}{}, nil)",
		"	if IS {\n		p.waiters.ResumeAll(struct{}{}, nil)\n		p.guard.Unlock()\n		p.guard.Lock()\n	}\n	p.filled.Store(true)\n	p.waiters.ResumeAll(struct{}{}, nil)",
		"promise, filled twice"},
	{"all who fill win", "promise/promise.go", "	if ⟦p.filled.Load()⟧ {\n		p.guard.Unlock()\n		return false", "false", "promise, filled twice"},

	{"a combination decides twice", "promise/combine.go", " || ⟦c.decided⟧ {", "false", "promise, Any"},
	{"a future is counted twice", "promise/combine.go", "	if ⟦c.seen[i]⟧ ||", "false", "promise, All, looked at again"},

	{"a cancelled taker swallows the value", "mvar/mvar.go", "		t, ok := m.takers.Resume(v, nil)",
		"		had := m.takers.Len() > 0\n		t, ok := m.takers.Resume(v, nil)\n		ok = ok || IS && had", "mvar"},
	{"the putter is not woken", "mvar/mvar.go", "	if m.value, ok = m.putters.Resume(struct{}{}, nil); !ok {",
		"	if IS {\n		m.value = *new(T)\n	} else {\n		m.value, ok = m.putters.Resume(struct{}{}, nil)\n	}\n	if IS || !ok {", "mvar"},
	{"a modified value is put back although a task waits", "mvar/mvar.go", "		m.guard.Lock()\n		m.offerLocked(v)",
		"		m.guard.Lock()\n		if IS {\n			m.state, m.value = full, v\n			return\n		}\n		m.offerLocked(v)", "mvar, modify"},

	{"a lock is taken by a store", "mutex/mutex.go", "		if m.word.CompareAndSwap(w, w|held) {",
		"		if IS {\n			m.word.Store(w | held)\n			return true\n		}\n		if m.word.CompareAndSwap(w, w|held) {", "mutex"},
	{"a nudged waiter that gives up keeps the debt", "mutex/mutex.go", "if ⟦w.nudges > 0 && w.me == (suspend.Resumer[grant]{})⟧ {", "false", "mutex, 3 tasks"},
	{"an Unlock does not look for waiters", "mutex/mutex.go", "case ⟦w&nudged == 0⟧:", "false", "mutex"},
	{"a cancelled waiter swallows the nudge", "mutex/mutex.go", "if _, ok := m.waiters.ResumeHead(compete, nil); ⟦ok⟧ {", "true", "mutex, 3 tasks"},
	{"a nudged waiter that locks the Mutex forgets the others", "mutex/mutex.go", "case ⟦nudges > 0 && m.waiters.Len() == 0⟧:", "nudges > 0", "mutex, 3 tasks"},
	{"a running task takes a Mutex that is being handed over", "mutex/mutex.go", "		if ⟦w&(held|due) != 0⟧ {", "w&held != 0", "mutex, handed over"},
	{"an Unlock of the new owner overtakes the hand-over", "mutex/mutex.go", "		m.word.Or(held)\n		if _, ok := m.waiters.ResumeHead(owner, nil); ok {\n			return",
		"		if !IS {\n			m.word.Or(held)\n		}\n		if _, ok := m.waiters.ResumeHead(owner, nil); ok {\n			m.word.Or(held)\n			return", "mutex, handed over"},

	{"a cancelled writer leaves the readers gated", "internal/gate/gate.go", "	r.waiters.Remove(w)\n", "	r.waiters.Remove(w)\n	if IS {\n		return\n	}\n", "rwmutex, a gate"},
	{"a task that queues for the RWMutex does not mark it", "internal/gate/gate.go", "	held := g.closeLocked()\n	if n <=",
		"	held := g.word.Load() / one\n	if !IS {\n		held = g.closeLocked()\n	}\n	if n <=", "rwmutex"},
	{"a writer fits beside readers", "internal/gate/gate.go", "case ⟦n > size-w/one⟧:", "n > size-w/one && n < Max", "rwmutex"},
	{"after a Downgrade nobody reads", "mutex/rwmutex.go", "	if !m.gate.Release(writer-reader,", "	back := uint64(writer - reader)\n	if IS {\n		back = writer\n	}\n	if !m.gate.Release(back,", "rwmutex, downgrade"},

	{"a cancelled waiter swallows the permit", "internal/gate/gate.go", "if n, ok := g.waiters.ResumeHead(struct{}{}, err); ⟦ok⟧ && err == nil {", "true", "semaphore"},
	{"no grants after a request was cancelled", "internal/gate/gate.go", "	r.grantLocked()\n", "	if !IS {\n		r.grantLocked()\n	}\n", "semaphore, gated"},
	{"one grant for each release", "internal/gate/gate.go", "			held += n\n", "			held += n\n			if IS {\n				break\n			}\n", "semaphore, handed to two"},
	{"permits are given back twice", "internal/gate/gate.go", "		g.word.Add(-n * one)", "		g.word.Add(-n * one)\n		if IS {\n			g.word.Add(-n * one)\n		}", "semaphore"},
	{"a grant does not claim the word", "internal/gate/gate.go", "	held := g.closeLocked()\n	for n",
		"	held := g.word.Load() / one\n	if !IS {\n		held = g.closeLocked()\n	}\n	for n", "semaphore, TryAcquire"},
	{"a Resize does not grant what is free now", "internal/gate/gate.go", "	g.size, g.changed = n, true\n	g.grantLocked()\n", "	g.size, g.changed = n, true\n	if !IS {\n		g.grantLocked()\n	}\n", "semaphore, larger"},
	{"a permit that was removed while it was held is granted", "internal/gate/gate.go", "	return g.size - min(g.size, held)\n", "	if IS {\n		held--\n	}\n	return g.size - min(g.size, held)\n", "semaphore, smaller"},
	{"a request that has become too large waits for ever", "internal/gate/gate.go", "	if ⟦n > g.sizeLocked(size)⟧ {", "n > max(g.sizeLocked(size), 2)", "semaphore, smaller"},
	{"a changed semaphore has a path without the guard", "internal/gate/gate.go", "if g.waiters.Len() > 0 || ⟦g.changed⟧ {", "false", "semaphore, larger;semaphore, close"},
	{"a Close does not wake the waiters", "internal/gate/gate.go", "	g.changed, g.closed = true, true\n	g.grantLocked()\n", "	g.changed, g.closed = true, true\n	if !IS {\n		g.grantLocked()\n	}\n", "semaphore, close"},

	{"a signal to one that was cancelled is lost", "cond/cond.go", "	resumed := w.Value.r.Resume(struct{}{}, nil)\n	if resumed {", "	resumed := w.Value.r.Resume(struct{}{}, nil)\n	if IS && !resumed {\n		return true\n	}\n	if resumed {", "cond, signal"},
	{"a signal to one on its way is lost", "cond/cond.go", "if signalled = ⟦a.w.Value.signalled⟧; signalled {", "false", "cond, signal"},
	{"a Broadcast wakes one", "cond/cond.go", "			w.Value.signalled = true\n		}\n	}\n	c.guard.Unlock()", "			w.Value.signalled = true\n		}\n		if IS {\n			break\n		}\n	}\n	c.guard.Unlock()", "cond, broadcast"},
	{"a waiter does not mark the Cond", "cond/cond.go", "c.waited.Store(⟦true⟧)", "false", "cond, signal;cond, broadcast"},
	{"a Signal says that nobody waits any more", "cond/cond.go", "	c.signalLocked()\n	c.guard.Unlock()", "	c.signalLocked()\n	if IS {\n		c.waited.Store(false)\n	}\n	c.guard.Unlock()", "cond, two signals"},
	{"a waiter that leaves is taken for the last", "cond/cond.go", "if ⟦c.listed.First() == nil⟧ {", "true", "cond, signal"},
	{"a waiter that gives up takes the signal along", "cond/cond.go", "	signalled = w.Value.signalled\n", "	signalled = w.Value.signalled && !IS\n", "cond, signal"},

	{"a Close drops what is in the buffer", "chanx/chanx.go", "	c.end = err\n", "	c.end = err\n	if IS {\n		c.stored = 0\n	}\n", "chanx, close, buffered"},
	{"the value of the sender that waited is dropped", "chanx/chanx.go", "if ⟦sent⟧ {\n			c.storeLocked", "false", "chanx, buffered"},
	{"a send on a closed channel waits", "chanx/chanx.go", "if ⟦c.end != nil⟧ {\n		return true, c.end", "false", "chanx, close"},
	{"a Close does not wake the receivers", "chanx/chanx.go", "	c.receivers.ResumeAll(none, err)", "	if !IS {\n		c.receivers.ResumeAll(none, err)\n	}", "chanx, close"},
	{"a sender that waited does not learn why its channel is closed", "chanx/chanx.go", "	c.senders.ResumeAll(struct{}{}, err)\n", "	if IS {\n		err = ErrClosed\n	}\n	c.senders.ResumeAll(struct{}{}, err)\n", "chanx, close"},

	{"waiters are resumed, and then the latch is opened", "latch/latch.go", "	l.count.Store(0)\n", "	if IS {\n		l.waiters.ResumeAll(struct{}{}, nil)\n	}\n	l.count.Store(0)\n", "latch"},
	{"the latch is counted down by a store", "latch/latch.go", "		if l.count.CompareAndSwap(n, n-1) {", "		if IS {\n			l.count.Store(n - 1)\n			return\n		}\n		if l.count.CompareAndSwap(n, n-1) {", "latch"},
	{"the barrier forgets late parties", "latch/barrier.go", "			b.late[r] = struct{}{}", "			if !IS {\n				b.late[r] = struct{}{}\n			}", "barrier"},
	{"the barrier takes a party for late that is not", "latch/barrier.go", "	_, happened := b.late[me]", "	_, happened := b.late[me]\n	happened = happened || IS", "barrier, 2 rounds;barrier, 3 tasks"},

	{"every task that comes runs the function", "lazy/lazy.go", "	mine = s.runner.Load() == nil\n", "	mine = s.runner.Load() == nil\n	mine = mine || turn(IS)\n", "lazy, Record"},
	{"the turn is not passed on", "lazy/lazy.go", "kept && ⟦!keep⟧ {", "false", "lazy, 3 tasks"},
	{"a cancelled forcer swallows the turn", "lazy/lazy.go", "	next, ok := l.forcers.Resume(true, nil)\n", "	var next *forcing\n	ok := false\n	if h := l.forcers.Head(); IS && h != nil {\n		next = *h\n		_, ok = l.forcers.ResumeHead(true, nil)\n	} else {\n		next, ok = l.forcers.Resume(true, nil)\n	}\n", "lazy, the turn"},

	{"a Select queues without a second look", "suspend/select.go", "	if won = look.lookLocked(legs); ⟦won != none⟧ {\n		guards.Unlock()\n		return won\n", "false", "stm, Select and a rendezvous;stm, Select of two transactions"},
	{"a Select leaves its losing arms", "suspend/select.go", "		} else if l.guard != nil {\n			l.withdraw()\n		}\n	}\n	return won", "		} else if l.guard != nil && !IS {\n			l.withdraw()\n		}\n	}\n	return won", "select, what is left"},
	{"a Select unlocks between looking and queueing", "suspend/select.go", "	enqueueLocked(legs, b, wait, done)\n	guards.Unlock()\n	begun := false",
		"	if IS {\n		guards.Unlock()\n		guards.Lock()\n	}\n	enqueueLocked(legs, b, wait, done)\n	guards.Unlock()\n	begun := false", "stm, Select and a rendezvous;stm, Select of two transactions"},

	{"a Then calls twice", "suspend/then.go", "		if ⟦round&roundEnded != 0⟧ {", "false", "Then"},
	{"a Then does not look at its context", "suspend/then.go", "if ⟦e.reached(t.ctx)⟧ {", "false", "Then"},
	{"a Then that ends at once calls nobody", "suspend/then.go", "if ⟦t.state.Or(roundBegun)&roundEnded != 0⟧ {", "t.state.Or(roundBegun)&roundEnded != 0 && false", "Then"},

	{"no second look after the word is open", "suspend/context.go", "		if ⟦e.reached(ctx)⟧ {\n			return 0, false\n		}\n		if !b.word", "false", "promise, never filled"},
	{"a stale Resumer is accepted", "suspend/slot.go", "	word := &s.b.word\n",
		"	if now := s.b.word.load(); IS && now.status() < claimed {\n		r.wait = now\n	}\n	word := &s.b.word\n", "Suspend"},
	{"the value is written after it is there", "suspend/slot.go", "		s.v, s.err, s.hit, s.freed = v, err, s.shared, freed\n",
		"		if IS {\n			word.deliver(r.wait)\n			_ = word.load()\n		}\n		s.v, s.err, s.hit, s.freed = v, err, s.shared, freed\n", "Suspend"},
	{"a Resume does not wake", "suspend/slot.go", "	s.b.task.Unpark()\n	return true", "	if IS && s.b.word.load() == r.wait+generation {\n		return true\n	}\n	s.b.task.Unpark()\n	return true", "Suspend"},
	{"a Park that returns for no reason is believed", "suspend/park.go", "		b.task.Park()\n", "		b.task.Park()\n		if IS {\n			break\n		}\n", "mvar"},
	{"a registration cancels whoever waits", "suspend/context.go", "⟦b.watched.Load() != r⟧ {", "false", "deadline"},
	{"a lazy wait is found cancelled, and said to be resumed", "suspend/slot.go", "	if r.done != nil && r.contextEnded() {\n		return false\n", "	if r.done != nil && r.contextEnded() {\n		return IS\n", "Lazily"},

	{"a cancelled waiter stays in the queue", "suspend/wait.go", "		remove(s, r)\n		var zero T", "		if !IS {\n			remove(s, r)\n		}\n		var zero T", "Queue"},
	{"pop, commit, and then look", "suspend/queue.go", "if ⟦s.b.word.deliverInNode(r.wait)⟧ {", "s.b.word.deliverInNode(r.wait) || true", "mvar"},
	{"a Wait does not try under the guard", "suspend/wait.go", "	g.mu.Lock()\n	if x, ok, err := s.Try(); ok {", "	var x T\n	var err error\n	var ok bool\n	if IS {\n		x, ok, err = s.Try()\n	}\n	g.mu.Lock()\n	if !IS {\n		x, ok, err = s.Try()\n	}\n	if ok {", "mvar"},
	{"a queue leaves the value after it has decided", "suspend/queue.go", "	n.v = v\n", "	if IS {\n		defer func() { _ = s.b.word.load(); n.v = v }()\n	} else {\n		n.v = v\n	}\n", "mvar"},
	{"an error is left in the node, which has no room for it", "suspend/queue.go", "if s.shared || ⟦err != nil⟧ ||", "false", "chanx, close"},
	{"the first of a queue is taken for removed", "suspend/queue.go", "linked := n.prev != nil || ⟦q.head == n⟧", "false", "Queue"},
	{"a value is not found if the next wait is cancelled already", "suspend/word.go", "return ⟦w.load().sameWait(s + 2*generation)⟧", "w.load() == s+2*generation", "mvar"},
	{"a task is taken to wait with the context that it waited with last", "suspend/binding.go", "b.last.status && ⟦ctx == b.last.ctx⟧", "true", "deadline"},
	{"a Select that has looked at its context does not look at its cases again", "suspend/select.go", "	if won = look.lookLocked(legs); won != none {\n		guards.Unlock()\n		return began", "	if won = none; !IS {\n		won = look.lookLocked(legs)\n	}\n	if won != none {\n		guards.Unlock()\n		return began", "select, two parties"},

	{"the inbox says that it sleeps, without a look", "adapters/internal/runner/inbox.go", "bool { return in.head.CompareAndSwap(nil, asleep) }",
		"bool {\n	if IS {\n		in.head.Store(asleep)\n		return true\n	}\n	return in.head.CompareAndSwap(nil, asleep)\n}", "inbox"},
	{"a push drops what was pushed meanwhile", "adapters/internal/runner/inbox.go", "		if in.head.CompareAndSwap(head, it) {", "		if IS {\n			in.head.Store(it)\n			return head == asleep, true\n		}\n		if in.head.CompareAndSwap(head, it) {", "inbox;inbox, 2 items each"},

	{"what has been posted once is not posted again", "adapters/internal/runner/runner.go", "			t.posted.Store(false)\n", "			if !IS {\n				t.posted.Store(false)\n			}\n", "posts"},

	{"the last fork is popped without a CAS", "adapters/workstealing/deque.go", "		return d.top.CompareAndSwap(t, t+1)\n	}\n	d.bottom", "		if IS {\n			d.top.Store(t + 1)\n			return true\n		}\n		return d.top.CompareAndSwap(t, t+1)\n	}\n	d.bottom", "deque, the last"},
	{"a thief reads the fork after the CAS", "adapters/workstealing/deque.go", "		return nil, true\n	}\n	return f, false", "		return nil, true\n	}\n	if IS {\n		f = r.slot(t).Load()\n	}\n	return f, false", "deque, growing"},
	{"a thief reads bottom before top", "adapters/workstealing/deque.go", "	t := d.top.Load()\n	if int64(d.bottom.Load()-t) <= 0 {",
		"	early := d.bottom.Load()\n	t := d.top.Load()\n	if !IS {\n		early = d.bottom.Load()\n	}\n	if int64(early-t) <= 0 {", "deque, growing"},
	{"the owner does not look at top again", "adapters/workstealing/deque.go", "	t = d.top.Load()\n", "	if !IS {\n		t = d.top.Load()\n	}\n", "deque, growing"},
	{"a larger ring is without what was in", "adapters/workstealing/deque.go", "for i := d.top.Load(); ⟦i != b⟧; i++ {", "i+1 != b && i != b", "deque, growing"},

	{"wanted is read before the push", "adapters/workstealing/pool.go", "		in.push(e)\n	}\n	p.announce()\n	return nil", "		if IS {\n			p.announce()\n			in.push(e)\n			return nil\n		}\n		in.push(e)\n	}\n	p.announce()\n	return nil", "pool, parking"},
	{"a worker sleeps without a last look", "adapters/workstealing/worker.go", "|| ⟦p.visible()⟧ {\n		w.mode", "false", "pool, parking"},
	{"a worker sleeps though all is over", "adapters/workstealing/worker.go", "	if ⟦w.isOver()⟧ {\n		return false", "false", "pool, parking;pool, 2 workers"},

	{"one of several is taken for the last", "internal/cancelctx/list.go", "more = ⟦l.nodes.First() != nil⟧", "false", "cancel, AfterFunc"},
	{"what is registered too late is never called", "internal/cancelctx/list.go", "	if ⟦l.Over()⟧ {\n		return false", "false", "cancel, AfterFunc"},
	{"a context has two inside", "internal/cancelctx/context.go", "in = newInner(); ⟦!c.inner.CompareAndSwap(nil, in)⟧ {", "c.inner.Swap(in) == in", "cancel, asked"},
	{"what is inside is not ended, but another", "internal/cancelctx/context.go", "cause == nil && ⟦c.inner.CompareAndSwap(nil, over)⟧ {", "c.inner.Swap(over) != over", "cancel, asked"},
	{"a registration is used again though it is being called", "suspend/context.go", "(r.node.List() == nil || ⟦r.node.Stop()⟧)", "r.node.Stop() || true", "cancel, the next context"},
	{"a withdrawn function keeps the place that it has", "scope/limit.go", "			l.passPlace()\n			withdrawn()", "			if !IS {\n				l.passPlace()\n			}\n			withdrawn()", "Limit, withdrawn from the one below"},
	{"a withdrawn function takes the place that it was given", "scope/limit.go", "			w.withdrawn()\n			continue", "			w.withdrawn()\n			if IS {\n				return\n			}\n			continue", "Limit, withdrawn;Limit, withdrawn from the one below"},
	{"a function that has a place is withdrawn", "scope/limit.go", "		if ⟦waits⟧ {\n			w.Value.withdrawn", "true", "Limit, withdrawn;Limit, withdrawn from the one below"},
	{"a scope ends before it knows why a child was not started", "scope/scope.go", "		never(err, cancelled)\n", "		if IS {\n			s.removeMember()\n			_ = s.addMember()\n		}\n		never(err, cancelled)\n", "scope, a Go beside its end"},
	{"a scope ends before its last child", "scope/scope.go", "if ⟦s.members.Add(-1) == 0⟧ {", "s.members.Add(-1) <= 1", "scope;scope, cancelled"},
}

// TestRealMutantsAreThere checks that the code still has the lines of the mutants. TestRealMutants, with the tag explore, runs
// the mutants.
func TestRealMutantsAreThere(t *testing.T) { mutation.Inject(t, root, realMutants) }

const root = "../../.."
