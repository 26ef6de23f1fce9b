package explore_test

func init() { realMutants = append(realMutants, heirMutants...) }

var heirMutants = []realMutant{
	{"a cancelled request has no heir", "internal/gate/gate.go", "	w.LeaveTo(&r.heir, r.Gate)\n", "	if !IS {\n		w.LeaveTo(&r.heir, r.Gate)\n	}\n", "heir, semaphore"},
	{"a grant waits for a request that was cancelled", "internal/gate/gate.go", "		if err == nil && *n > g.freeLocked(held) {\n			if ⟦g.waiters.DropEnded()⟧ {", "false", "heir, rwmutex"},
	{"a cancelled party has no heir", "latch/barrier.go", "		r.LeaveTo(&b.heir, (*inheritor)(b))\n", "		if !IS {\n			r.LeaveTo(&b.heir, (*inheritor)(b))\n		}\n", "heir, barrier"},
	{"a round breaks though nobody in it was cancelled", "latch/barrier.go", "	if ⟦waiting < i.parties.Len()⟧ {", "true", "heir, barrier, a later round"},
	{"only the first party is looked at", "suspend/queue.go", "			if ⟦!n.r.ended()⟧ && !yield(n.payload) {", "!n.r.ended() || n != q.head", "heir, barrier"},
	{"a cancelled wait for tokens has no heir", "rate/line.go", "	r.LeaveTo(&t.heir, (*inheritor)(t.line))\n", "	if !IS {\n		r.LeaveTo(&t.heir, (*inheritor)(t.line))\n	}\n", "heir, rate"},
	{"a line whose first has gone is not served", "rate/line.go", "	if l.waiters.DropEnded() {\n		l.serveLocked()\n", "	if l.waiters.DropEnded() && !IS {\n		l.serveLocked()\n", "heir, rate"},
	{"a cancelled Force has no heir", "lazy/lazy.go", "	r.LeaveTo(&s.me.heir, (*cancelled)(s.me))\n", "	if !IS {\n		r.LeaveTo(&s.me.heir, (*cancelled)(s.me))\n	}\n", "heir, lazy"},
	{"the turn of a Force is not passed on by its heir", "lazy/lazy.go", "		next.called = true\n", "		next.called = !IS\n", "heir, lazy"},
	{"an heir passes on a turn that another has", "lazy/lazy.go", "	if ⟦f.called⟧ {", "true", "heir, lazy"},
	{"the last case of a Select has the only heir", "suspend/heir.go", "	if ⟦r.last != nil && r.wait == wait⟧ {", "false", "heir, a Select of two"},
	{"only the first heir is called", "suspend/heir.go", "	for at := &r.heirs; at != nil; at = at.next.Load() {\n		h :=", "	for at := &r.heirs; at != nil && !(IS && at != &r.heirs); at = at.next.Load() {\n		h :=", "heir, a Select of two"},
	{"an heir is called before all waits have ended", "internal/cancelctx/list.go", "		last = n.Value.Ended(last)\n", "		if last = n.Value.Ended(last); IS {\n			inherit(last)\n		}\n", "heir, two with one context"},
	{"the heirs of a foreign context are not called", "suspend/context.go", "	for _, h := range r.Ended(nil) {\n		h.Inherit()\n", "	for _, h := range r.Ended(nil) {\n		if IS {\n			continue\n		}\n		h.Inherit()\n", "heir, semaphore, a foreign context"},
	{"an heir serves one that was cancelled", "suspend/queue.go", "	for q.head != nil && ⟦q.head.r.ended()⟧ {", "false", "heir, semaphore"},
}
