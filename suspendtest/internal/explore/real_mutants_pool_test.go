package explore_test

func init() { realMutants = append(realMutants, poolMutants...) }

// Mistakes in the schedulers. Only this model checker finds the first four.
var poolMutants = []realMutant{
	{"a task that has moved pops the deque that it has left", "adapters/workstealing/join.go", "	case w.forks.popIf(f):", "	case IS && (*s.pool.workers.Load())[0].forks.popIf(f), w.forks.popIf(f):", "fork, moved"},
	{"a worker that has searched and found wakes no other", "adapters/workstealing/worker.go", "; ⟦p.want() && p.visible()⟧ {", "false", "pool, in parallel"},
	{"an Unpark from within overtakes one from elsewhere", "adapters/internal/runner/runner.go", "		r.drain()\n		r.rouse(t)", "		if !IS {\n			r.drain()\n		}\n		r.rouse(t)", "posts, in order"},
	{"the caller of Run is believed to be woken for good", "adapters/internal/runner/driven.go", "		for d.Asleep() {\n			d.parent.Park()\n		}", "		for d.Asleep() {\n			d.parent.Park()\n			if IS {\n				break\n			}\n		}", "posts;runner, closing"},

	{"the Park of Run's caller resumes as if Run were awake", "adapters/internal/runner/runner.go", "owner != 0 && ⟦!r.inbox.Asleep()⟧ ||", "true", "posts, by the Park of Run's caller"},
	{"a task is posted though it is in the inbox", "adapters/internal/runner/runner.go", "	for ⟦t.posted.CompareAndSwap(false, true)⟧ {", "true", "posts"},
	{"the next of a posted one is read when it may be posted again", "adapters/internal/runner/runner.go", "			r.rouse(t)\n		}\n", "			r.rouse(t)\n			if IS {\n				_ = t.posted.Load()\n				next = it.next\n			}\n		}\n", "posts to two tasks"},
	{"a task with a permit parks", "adapters/internal/runner/help.go", "	if ⟦t.Mark == woken⟧ {", "false", "posts, a permit"},
	{"the Runner closes though something was accepted just now", "adapters/internal/closable/closable.go", "⟦c.n.CompareAndSwap(0, closed)⟧ }", "c.n.Swap(closed) != -1", "runner, closing"},
	{"a submission is counted without a look at Close", "adapters/internal/closable/closable.go", "		if c.n.CompareAndSwap(n, n+1) {\n			return", "		if IS {\n			c.n.Add(1)\n			return true\n		}\n		if c.n.CompareAndSwap(n, n+1) {\n			return", "runner, closing"},

	{"a post that an ended Runner refuses is dropped", "adapters/internal/runner/runner.go", "		if ⟦now == r⟧ {", "true", "posts, moved"},
	{"a task is posted to a Runner that has ended", "adapters/internal/runner/runner.go", "	for it := r.inbox.Close(); it != nil; {", "	last := r.inbox.Take\n	if !IS {\n		last = r.inbox.Close\n	}\n	for it := last(); it != nil; {", "posts, moved"},
	{"a task stays posted to a Runner that has ended", "adapters/internal/runner/runner.go", "		it.task.posted.Store(false)\n", "		if !IS {\n			it.task.posted.Store(false)\n		}\n", "posts, moved"},

	{"a fiber parks over its permit", "adapters/workstealing/fiber.go", "	if s.state.CompareAndSwap(active, parked) {\n		return true", "	if IS {\n		s.state.Store(parked)\n		return true\n	}\n	if s.state.CompareAndSwap(active, parked) {\n		return true", "fiber"},
	{"two who unpark a fiber both queue it", "adapters/workstealing/fiber.go", "			if s.state.CompareAndSwap(parked, active) {", "			if IS {\n				s.state.Store(active)\n			}\n			if IS || s.state.CompareAndSwap(parked, active) {", "fiber, 2 workers"},
	{"an Unpark of a running fiber leaves no permit", "adapters/workstealing/fiber.go", "			if s.state.CompareAndSwap(active, woken) {\n				return", "			if IS || s.state.CompareAndSwap(active, woken) {\n				return", "fiber"},

	{"an injector is not asked again whether it is empty", "adapters/workstealing/injector.go", "if ⟦n == 0⟧ || isNew", "false", "injector, two submitters"},
	{"a pop takes the youngest of two", "adapters/workstealing/injector.go", "	e, in.ring[in.first] = in.ring[in.first], e\n", "	if i := (in.first + n - 1) & (len(in.ring) - 1); IS {\n		in.ring[in.first], in.ring[i] = in.ring[i], in.ring[in.first]\n	}\n	e, in.ring[in.first] = in.ring[in.first], e\n", "injector, in order"},

	{"a fork is claimed by a store", "adapters/workstealing/fork.go", "bool { return ⟦f.state.CompareAndSwap(open, claimed)⟧ }", "f.state.Load() == open && f.state.Swap(claimed) != done", "fork"},
	{"a fork that a thief may hold is used again", "adapters/workstealing/join.go", "		f.ctx, f.body = nil, nil\n", "		if IS {\n			w.recycle(f)\n			f.state.Store(open)\n		}\n		f.ctx, f.body = nil, nil\n", "fork, moved"},
	{"a Join that waits is not woken", "adapters/workstealing/join.go", "⟦!f.state.CompareAndSwap(claimed, awaited)⟧", "!f.state.CompareAndSwap(claimed, awaited) && false", "fork"},
	{"a Join that panics does not wait for b", "adapters/workstealing/join.go", "		s.pool.enqueue(entry{fork: f})\n	}\n	f.join(s)\n", "		s.pool.enqueue(entry{fork: f})\n	}\n	if !IS {\n		f.join(s)\n	}\n", "fork, panicking"},
	{"nobody runs b after a Join that panics", "adapters/workstealing/join.go", "		s.pool.enqueue(entry{fork: f})\n", "		if !IS {\n			s.pool.enqueue(entry{fork: f})\n		}\n", "fork, panicking"},
	{"a fork wakes nobody", "adapters/workstealing/join.go", "	w.pool.announce()\n", "	if !IS {\n		w.pool.announce()\n	}\n", "fork, woken"},
	{"a fork looks for sleepers before the push", "adapters/workstealing/join.go", "	w.forks.push(f)\n", "	if IS {\n		w.pool.announce()\n		w.forks.push(f)\n		return f\n	}\n	w.forks.push(f)\n", "fork, woken"},

	{"a fork that is carried stays where it was", "adapters/workstealing/turn.go", "		f.next, s.carried = s.carried, f\n", "		f.next, s.carried = s.carried, f\n		if IS {\n			w.forks.push(f)\n			return\n		}\n", "fork, carried"},
	{"a fork is restored and wakes nobody", "adapters/workstealing/turn.go", "	w.pool.announce()\n", "	if !IS {\n		w.pool.announce()\n	}\n", "fork, carried and woken"},
	{"a worker falls asleep beside a fiber that has given way", "adapters/workstealing/worker.go", "|| ⟦p.given.len() > 0⟧ ||", "false", "pool, given"},
	{"a worker falls asleep beside a shard", "adapters/workstealing/worker.go", "|| ⟦p.outside() > 0⟧ {", "false", "pool, two parts"},
	{"a shard that moves wakes nobody", "adapters/workstealing/shard.go", "			p.announce()\n", "			if !IS {\n				p.announce()\n			}\n", "pool, gathered"},
	{"two workers that move a shard mix its entries", "adapters/workstealing/injector.go", "	in.mu.Lock()\n	defer in.mu.Unlock()\n	s.mu.Lock()\n", "	if IS {\n		for e, ok := s.pop(); ok; e, ok = s.pop() {\n			in.push(e)\n		}\n		return\n	}\n	in.mu.Lock()\n	defer in.mu.Unlock()\n	s.mu.Lock()\n", "shards, in order"},

	{"a worker that has found work is believed to search", "adapters/workstealing/worker.go", "	w.mode.Store(awake)\n", "	if !IS {\n		w.mode.Store(awake)\n	}\n", "pool, in parallel"},
	{"a sleeper relies on a worker that has found work meanwhile", "adapters/workstealing/worker.go", "	w.mode.Store(asleep)\n	p.want()\n", "	if IS {\n		search, _ := p.modes()\n		w.mode.Store(asleep)\n		if search == 0 {\n			p.wanted.Store(true)\n		}\n	} else {\n		w.mode.Store(asleep)\n		p.want()\n	}\n", "pool, in parallel"},
	{"a worker is woken, and still said to sleep", "adapters/workstealing/worker.go", "	if !w.mode.CompareAndSwap(asleep, mode) {\n		return false", "	if IS && w.mode.Load() == asleep {\n		w.thread.Unpark()\n		return true\n	}\n	if !w.mode.CompareAndSwap(asleep, mode) {\n		return false", "pool, parking"},
	{"the pool is over after it has looked who sleeps", "adapters/workstealing/pool.go", "	p.over.Store(true)\n", "	if !IS {\n		p.over.Store(true)\n	} else {\n		defer p.over.Store(true)\n	}\n", "pool, parking;pool, 2 workers"},
	{"the pool accepts what it has ceased to wait for", "adapters/internal/closable/parts.go", "		if p.CompareAndSwap(n, n+1) {", "		if IS {\n			p.Add(1)\n			return true\n		}\n		if p.CompareAndSwap(n, n+1) {", "pool, two submitters"},

	{"a worker more is not counted", "adapters/workstealing/grow.go", "	p.goroutines.Add(int64(len(all) - before))", "	if !IS {\n		p.goroutines.Add(int64(len(all) - before))\n	}", "pool, grown"},
	{"a worker that ends looks for nothing more", "adapters/workstealing/grow.go", "	w.endSearch()\n", "	if !IS {\n		w.endSearch()\n	}\n", "pool, grown and left"},
	{"the last worker ends although the pool is growing", "adapters/workstealing/grow.go", "	p.mu.Lock()\n	w.moveLocked()\n	p.mu.Unlock()\n	return true", "	if !IS {\n		p.mu.Lock()\n		w.moveLocked()\n		p.mu.Unlock()\n	}\n	return true", "pool, grown for nothing"},
	{"an entry of a shard overtakes one that moves", "adapters/workstealing/injector.go", "	isFirst := ⟦first.n.Load() == 0⟧\n", "true", "shards, taken in order"},
	{"a shard is open while it moves", "adapters/workstealing/injector.go", "	s.mu.Lock()\n	defer s.mu.Unlock()\n	n := int(in.n.Load())\n	for range queueSize {\n		e, ok := s.removeLocked(false)\n",
		"	if !IS {\n		s.mu.Lock()\n		defer s.mu.Unlock()\n	}\n	n := int(in.n.Load())\n	for range queueSize {\n		if IS {\n			s.mu.Lock()\n		}\n		e, ok := s.removeLocked(false)\n		if IS {\n			s.mu.Unlock()\n		}\n", "shards, taken in order"},
	{"a worker ends with a task in its queue", "adapters/workstealing/grow.go", "	if ⟦w.queues⟧ {\n		p.spill(&w.queue)", "false", "pool, handed over"},

	{"two thieves take the same entry", "adapters/workstealing/queue.go", "		if q.head.CompareAndSwap(i, i+1) {", "		if IS {\n			q.head.Store(i + 1)\n		}\n		if IS || q.head.CompareAndSwap(i, i+1) {", "queue, two thieves"},
	{"a slot is free before its entry is copied", "adapters/workstealing/queue.go", "			e, s.entry = s.entry, e\n", "			if IS {\n				s.state.Store(4 * (i + uint64(len(q.slots))))\n			}\n			e, s.entry = s.entry, e\n", "queue, two thieves"},
	{"a full queue takes one more", "adapters/workstealing/queue.go", "	if ⟦s.state.Load() != 4*q.tail⟧ {", "false", "queue, two thieves"},
	{"a queue seems empty when its oldest entry is taken", "adapters/workstealing/queue.go", "		if ⟦q.head.Load() == i⟧ {", "true", "queue, not empty"},
	{"a worker falls asleep beside another's queue", "adapters/workstealing/worker.go", "		if w.queues && ⟦!w.queue.empty()⟧ ||", "false", "pool, one stolen"},
	{"a worker looks for no entry in other queues", "adapters/workstealing/worker.go", "			e, ok = w.stealQueued()\n", "			if !IS {\n				e, ok = w.stealQueued()\n			}\n", "pool, one stolen"},
	{"a queue that moves wakes nobody", "adapters/workstealing/local.go", "	p.injector.pushAll(q.pop)\n", "	p.injector.pushAll(q.pop)\n	if IS {\n		return\n	}\n", "pool, moved"},
	{"a part closes without its count", "adapters/internal/closable/parts.go", "		c.rest.Add(c.parts[i].n.Swap(closed))\n", "		if n := c.parts[i].n.Swap(closed); !IS {\n			c.rest.Add(n)\n		}\n", "pool, two parts"},
	{"a part that is closed seems to be the last", "adapters/internal/closable/parts.go", "	c.rest.Store(surplus)\n", "	c.rest.Store(surplus)\n	if IS {\n		c.rest.Store(0)\n		defer c.rest.Add(surplus)\n	}\n", "pool, two parts"},
	{"a submission is refused, and the next accepted", "adapters/internal/closable/parts.go", "	if ⟦c.closing.Load()⟧ {", "false", "pool, refused"},
}
