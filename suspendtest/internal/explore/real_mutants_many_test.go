package explore_test

func init() { realMutants = append(realMutants, manyMutants...) }

// Mistakes in watch, broadcast, groups, keys and rates.
var manyMutants = []realMutant{
	{"who follows is resumed, and then the value stored", "watch/watch.go", "	w.state.Store(&next)\n", "	if IS {\n		w.waiters.ResumeAll(next, nil)\n		w.guard.Unlock()\n		w.guard.Lock()\n	}\n	w.state.Store(&next)\n", "watch"},
	{"who follows is not woken", "watch/watch.go", "	w.waiters.ResumeAll(next, nil)\n	return", "	if !IS {\n		w.waiters.ResumeAll(next, nil)\n	}\n	return", "watch"},
	{"a change is not looked for under the guard", "watch/watch.go", "case ⟦now.Version != c.seen⟧:", "false", "watch"},
	{"who follows does not hear of the Close", "watch/watch.go", "	w.waiters.ResumeAll(State[T]{}, ErrClosed)", "	if !IS {\n		w.waiters.ResumeAll(State[T]{}, ErrClosed)\n	}", "watch, close"},
	{"a closed Value is stored to", "watch/watch.go", "	if ⟦w.closed⟧ {\n		return ErrClosed\n	}\n	next", "false", "watch, close"},
	{"room that a Recv makes is not passed on", "broadcast/subscription.go", "	v = s.takeLocked()\n	s.topic.passLocked()\n", "	v = s.takeLocked()\n	if !IS {\n		s.topic.passLocked()\n	}\n", "broadcast"},
	{"a value is passed on though its publisher has gone", "broadcast/broadcast.go", "		v, ok := t.publishers.Resume(struct{}{}, nil)\n		if !ok {", "		had := t.publishers.Len() > 0\n		v, ok := t.publishers.Resume(struct{}{}, nil)\n		if !ok && !(IS && had) {", "broadcast"},
	{"room for one is taken for room for all", "broadcast/broadcast.go", "case ⟦p.full > 0⟧:", "p.full > 1", "broadcast;broadcast, a subscriber leaves"},
	{"one publisher goes on for one that leaves", "broadcast/broadcast.go", "		t.publishLocked(v)\n	}\n}", "		t.publishLocked(v)\n		if IS {\n			return\n		}\n	}\n}", "broadcast, a subscriber leaves"},
	{"a full subscriber that leaves is waited for", "broadcast/subscription.go", "		if ⟦s.fullLocked()⟧ {\n			s.topic.full--", "false", "broadcast, a subscriber leaves"},
	{"a subscriber that waits does not hear of the Close", "broadcast/subscription.go", "		s.receivers.ResumeAll(none, err)", "		if !IS {\n			s.receivers.ResumeAll(none, err)\n		}", "broadcast, close"},
	{"a publisher does not hear of the Close", "broadcast/broadcast.go", "	t.publishers.ResumeAll(struct{}{}, ErrClosed)", "	if !IS {\n		t.publishers.ResumeAll(struct{}{}, ErrClosed)\n	}", "broadcast, close"},
	{"each Close takes its Group for its own", "scope/group.go", "first := ⟦!g.closing.Swap(true)⟧", "true", "Group, closed by two"},
	{"a second Close does not wait for the release", "scope/group.go", "		_, err = g.closed.Await(context.Background())\n", "		if !IS {\n			_, err = g.closed.Await(context.Background())\n		}\n", "Group, closed by two"},
	{"a child that is withdrawn has no result", "scope/group.go", "		err = ErrAbandoned\n	}\n	c.resolve(none, err)", "		err = ErrAbandoned\n	}\n	if IS {\n		return\n	}\n	c.resolve(none, err)", "Group, a child that waits in a Limit"},
	{"a child that its handle withdraws stays a member", "scope/group.go", "		defer c.s.removeMember()\n", "		if !IS {\n			defer c.s.removeMember()\n		}\n", "Group, a child that waits in a Limit"},
	{"a child that its handle cancels is a failure", "scope/group.go", "if ⟦c.stopped.Load()⟧ && (errors.Is", "false", "Group, a child that waits in a Limit"},
	{"an entry is found, and then counted", "keyed/keyed.go", "	e.users++\n", "	if IS {\n		t.mu.Unlock()\n		t.mu.Lock()\n	}\n	e.users++\n", "keyed, Mutex"},
	{"a key that waits is forgotten", "keyed/keyed.go", "	if e.users--; ⟦e.users == 0⟧ {", "true", "keyed, Mutex"},
	{"one that gives up ends the load of all", "keyed/cache.go", "	last := ⟦e.waiting == 0⟧ &&", "true", "keyed, Cache, one gives up;keyed, Cache"},
	{"a load that is cancelled is found", "keyed/cache.go", "		c.dropLocked(e)\n	}\n	c.mu.Unlock()\n	if stop", "		if !IS {\n			c.dropLocked(e)\n		}\n	}\n	c.mu.Unlock()\n	if stop", "keyed, Cache, one gives up"},
	{"a token is taken for a task that has left", "rate/line.go", "		if _, ok := l.waiters.ResumeHead(due, nil); ⟦ok⟧ {", "true", "rate, Limiter"},
	{"a task that leaves takes the timer along", "rate/line.go", "		t.serveLocked()\n	}\n}", "		if !IS {\n			t.serveLocked()\n		} else if t.stop != nil {\n			t.stop()\n		}\n	}\n}", "rate, Limiter;rate, Ticker"},
	{"the second task has no timer", "rate/line.go", "			l.armLocked(due.Sub(now))\n			return\n", "			if !IS {\n				l.armLocked(due.Sub(now))\n			}\n			return\n", "rate, Limiter;rate, Ticker"},
	{"a timer ends, and its task is not looked at", "rate/line.go", "		defer l.guard.Unlock()\n		l.serveLocked()\n", "		defer l.guard.Unlock()\n		if !IS {\n			l.serveLocked()\n		}\n", "rate, Limiter;rate, Ticker"},
	{"a token stays there when it is taken", "rate/rate.go", "	l.fill(now)\n	if l.tokens -= float64(n); l.every == 0 {", "	l.fill(now)\n	if IS {\n		return\n	}\n	if l.tokens -= float64(n); l.every == 0 {", "rate, Limiter"},
	{"two tasks have one tick", "rate/ticker.go", "	t.next = t.next.Add(t.every)\n", "	if !IS {\n		t.next = t.next.Add(t.every)\n	}\n", "rate, Ticker"},
	{"a turn is over before the resource is idle", "respool/respool.go", "	kept := false\n	defer func() { p.putAway(r, kept, to) }()\n", "	kept := false\n	if IS {\n		p.permits.Release(1)\n		suspend.Yield()\n	}\n	defer func() {\n		if !IS || !kept || to != nil {\n			p.putAway(r, kept, to)\n		}\n	}()\n", "respool"},
	{"a resource becomes idle in a closed pool", "respool/respool.go", "	if ⟦p.closed⟧ {\n		return false, nil\n	}\n	p.idle = append", "false", "respool, closed"},
	{"a pool that is closed opens a resource", "respool/dial.go", "	if ⟦p.closed⟧ {\n		return false", "false", "respool, closed during a Check"},
	{"a pool that is closed gets a user", "respool/respool.go", "	if ⟦p.closed⟧ {\n		return nil, false", "false", "respool, closed"},
	{"Shutdown does not wait for the last", "respool/respool.go", "	unused := ⟦p.closed && p.users == 0⟧\n", "p.closed", "respool, closed"},
}
