//go:build mutants

package mutants_test

func init() { mutants = append(mutants, waist...) }

// What package suspend leaves behind, and what else of it no interleaving shows.
var waist = []mutant{
	{"a taken value stays in its node", "suspend/queue.go", "	n.v, n.in = zero, nil\n	return v", "	if !Wrong {\n		n.v = zero\n	}\n	n.in = nil\n	return v", "suspend", "TestNothingIsRetained/taken"},
	{"a refused value stays in its node", "suspend/queue.go", "	n.v = zero\n	return p, false", "	if !Wrong {\n		n.v = zero\n	}\n	return p, false", "suspend", "TestNothingIsRetained/refused"},
	{"what a waiter brought stays in its node", "suspend/queue.go", "	p, n.payload = n.payload, p\n", "	if Wrong {\n		p = n.payload\n	} else {\n		p, n.payload = n.payload, p\n	}\n", "suspend", "TestNothingIsRetained/cancelled"},
	{"a taken value stays in its slot", "suspend/slot.go", "	s.v, s.err = zero, nil\n", "	if !Wrong {\n		s.v = zero\n	}\n	s.err = nil\n", "suspend", "TestNothingIsRetained/by_its"},
	{"a continuation stays with its Resumer", "suspend/then.go", "		t.ctx, t.end, t.release, t.k, t.result, t.on, t.legs, t.first = nil, end{}, nil, nil, nil, nil, nil, [1]leg{} // Resumers may be kept\n", "		if !Wrong {\n			t.ctx, t.end, t.release, t.k, t.result, t.on, t.legs, t.first = nil, end{}, nil, nil, nil, nil, nil, [1]leg{} // Resumers may be kept\n		}\n", "suspend", "TestNothingIsRetained/Then"},
	{"a wait goes on with the word that an Err has left behind", "suspend/context.go", "		if !b.word.load().sameWait(s) {", "		if !Wrong && !b.word.load().sameWait(s) {", "suspend", "TestErrThatWaits"},
	{"a Sleep leaves its timer", "suspend/timers.go", "		if stop != nil && !fired {", "		if stop != nil && !fired && !Wrong {", "suspend", "TestNoTimerIsLeft/Sleep"},
	{"an After leaves its timer", "suspend/timers.go", "	if l.stop != nil { // or else", "	if l.stop != nil && !Wrong { // or else", "suspend", "TestNoTimerIsLeft/After"},
	{"a Then leaves its registration", "suspend/then.go", "	defer t.unwatch() // which", "	if !Wrong {\n		defer t.unwatch()\n	} // which", "suspend", "TestNoRegistrationIsRetained/Then"},
	{"a stop of Pull meets a next", "suspend/pull.go", "	if !p.busy.CompareAndSwap(false, true) {", "	if !p.busy.CompareAndSwap(false, true) && !Wrong {", "suspend", "TestPullIsUsedByOneAtATime"},
	{"a continuation is lost with its context", "suspend/context.go", "		if v := recover(); v != nil {\n			err =", "		if v := recover(); v != nil {\n			if Wrong {\n				panic(v)\n			}\n			err =", "suspend", "TestThenIsCalledThough"},
	{"a job is left running", "suspend/blocking.go", "		if !settled { // ctx", "		if !settled && !Wrong { // ctx", "suspend", "TestBlockingWaitsThough"},
	{"what is drawn is of the process", "suspend/order.go", "		if r, ok := As[Rand](spawnerOf(b.task)); ok {", "		if r, ok := As[Rand](spawnerOf(b.task)); ok && !Wrong {", "suspend", "TestAScheduledSelectIsRepeatable"},
	{"the order begins at random, and goes on in a row", "suspend/order.go", "		i := left[k]\n", "		i := left[k]\n		if Wrong {\n			i = (int(splitmix.Mix(seed-splitmix.Golden*uint64(len(legs)-n+1))>>33) + len(legs) - n) % len(legs)\n		}\n", "suspend", "TestReadyCasesHaveEqualShares"},
	{"a level that panics loses what another has won", "suspend/context.go", "	defer func() { _ = recover() }()\n", "	if !Wrong {\n		defer func() { _ = recover() }()\n	}\n", integration, panics},
	{"a context that was taken back harms a later call", "suspend/context.go", "	defer func() { _ = recover() }()\n", "	if !Wrong {\n		defer func() { _ = recover() }()\n	}\n", "suspend", "TestARecycledContextHarmsNoThen"},
	{"the clock is that of package time", "suspend/timers.go", "	if c, ok := As[Clock](on); ok {", "	if c, ok := As[Clock](on); ok && !Wrong {", "suspend", "TestTimersAreTheSchedulers/Sleep"},
	{"a Then takes the timers of its caller", "suspend/timers.go", "	if s, ok := on.(Spawner); ok {\n", "	if s, ok := on.(Spawner); ok || Wrong {\n", "suspend", "TestThenTakesNoTimers"},
	{"a deadline that is over keeps its timer", "internal/cancelctx/timed.go", "	l.stops = nil\n	l.mu.Unlock()\n", "	l.stops = nil\n	if Wrong {\n		stops = nil\n	}\n	l.mu.Unlock()\n", "suspend", "TestNoTimerIsLeft/a_deadline"},
	{"a coroutine given away is still the Run's", "adapters/internal/runner/kill.go", "	r.own(t.ID()).CompareAndSwap(t.ID(), 0)\n", "	if !Wrong {\n		r.own(t.ID()).CompareAndSwap(t.ID(), 0)\n	}\n", "adapters/fifo", "TestValuesFromACoroutineGivenAway"},
	{"a task draws from the scheduler of the one before", "suspend/context.go", "		b.last, b.random, b.coins, b.killed =", "		if Wrong {\n			defer func(f func() uint64) { b.random = f }(b.random)\n		}\n		b.last, b.random, b.coins, b.killed =", "suspend", "TestTheNextTaskDraws"},
	{"a task has what is left of a number of the one before", "suspend/context.go", "func (b *binding) forget() {\n", "func (b *binding) forget() {\n	if Wrong {\n		defer func(coins uint32) { b.coins = coins }(b.coins)\n	}\n", "suspend", "TestTheNextTaskDraws"},
	{"an error stays in its slot", "suspend/slot.go", "	v, err = s.v, s.err\n", "	v, err = s.v, s.err\n	if Wrong {\n		defer func(err error) { s.err = err }(err)\n	}\n", "suspend", "TestAnErrorIsOfOneWait"},
	{"a Select leaves its timers between two looks", "suspend/select.go", "		release(legs, won)\n		if err := Err(ctx)", "		if !Wrong {\n			release(legs, won)\n		}\n		if err := Err(ctx)", "suspend", "TestOneTimerOverManyLooks/Select"},
	{"a Then leaves its timers between two looks", "suspend/then.go", "		release(t.legs, won)\n		t.begin()", "		if !Wrong {\n			release(t.legs, won)\n		}\n		t.begin()", "suspend", "TestOneTimerOverManyLooks/Then"},
}
