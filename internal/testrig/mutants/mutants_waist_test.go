package mutants_test

import "github.com/braidgo/braid/internal/testrig/mutation"

func init() { mutants = append(mutants, waist...) }

// Mistakes of package suspend that no interleaving shows, such as memory that is kept.
var waist = []mutation.Mutant{
	{"a taken value stays in its node", "suspend/queue.go", "	n.v, n.in = zero, nil\n	return v", "	if !IS {\n		n.v = zero\n	}\n	n.in = nil\n	return v", "TestNothingIsRetained/taken", "suspend"},
	{"a refused value stays in its node", "suspend/queue.go", "	n.v = zero\n	return p, false", "	if !IS {\n		n.v = zero\n	}\n	return p, false", "TestNothingIsRetained/refused", "suspend"},
	{"what a waiter brought stays in its node", "suspend/queue.go", "	p, n.payload = n.payload, p\n", "	if IS {\n		p = n.payload\n	} else {\n		p, n.payload = n.payload, p\n	}\n", "TestNothingIsRetained/cancelled", "suspend"},
	{"a taken value stays in its slot", "suspend/slot.go", "	s.v, s.err = zero, nil\n", "	if !IS {\n		s.v = zero\n	}\n	s.err = nil\n", "TestNothingIsRetained/by_its", "suspend"},
	{"a continuation stays with its Resumer", "suspend/then.go", "		t.ctx, t.end, t.release, t.k, t.result, t.on, t.legs, t.first = nil, end{}, nil, nil, nil, nil, nil, [1]leg{}\n", "		if !IS {\n			t.ctx, t.end, t.release, t.k, t.result, t.on, t.legs, t.first = nil, end{}, nil, nil, nil, nil, nil, [1]leg{}\n		}\n", "TestNothingIsRetained/Then", "suspend"},
	{"a wait goes on with the word that an Err has left behind", "suspend/context.go", "		if !b.word.load().sameWait(s) {", "		if !IS && !b.word.load().sameWait(s) {", "TestErrThatWaits", "suspend"},
	{"a Sleep leaves its timer", "suspend/timers.go", "		if stop != nil && !fired {", "		if stop != nil && !fired && !IS {", "TestNoTimerIsLeft/Sleep", "suspend"},
	{"an After leaves its timer", "suspend/timers.go", "	if l.stop != nil {", "	if l.stop != nil && !IS {", "TestNoTimerIsLeft/After", "suspend"},
	{"a Then leaves its registration", "suspend/then.go", "	defer t.unregister()", "	if !IS {\n		defer t.unregister()\n	}", "TestNoRegistrationIsRetained/Then", "suspend"},
	{"a stop of Pull meets a next", "suspend/pull.go", "	if !p.busy.CompareAndSwap(false, true) {", "	if !p.busy.CompareAndSwap(false, true) && !IS {", "TestPullIsUsedByOneAtATime", "suspend"},
	{"a continuation is lost with its context", "suspend/context.go", "		if v := recover(); v != nil {\n			err =", "		if v := recover(); v != nil {\n			if IS {\n				panic(v)\n			}\n			err =", "TestThenIsCalledThough", "suspend"},
	{"a job is left running", "suspend/blocking.go", "		if !settled {", "		if !settled && !IS {", "TestBlockingWaitsThough", "suspend"},
	{"numbers are drawn from the source of the process", "suspend/random.go", "		if r, ok := As[sched.Rand](spawnerOf(b.task)); ok {", "		if r, ok := As[sched.Rand](spawnerOf(b.task)); ok && !IS {", "TestAScheduledSelectIsRepeatable", "suspend"},
	{"the order begins at random, and goes on in a row", "suspend/case_order.go", "		i := left[k]\n", "		i := left[k]\n		if IS {\n			i = (int(splitmix.Mix(seed-splitmix.Golden*uint64(len(legs)-n+1))>>33) + len(legs) - n) % len(legs)\n		}\n", "TestReadyCasesHaveEqualShares", "suspend"},
	{"a level that panics loses what another has won", "suspend/context.go", "	defer func() { _ = recover() }()\n", "	if !IS {\n		defer func() { _ = recover() }()\n	}\n", panics, integration},
	{"a context that was taken back harms a later call", "suspend/context.go", "	defer func() { _ = recover() }()\n", "	if !IS {\n		defer func() { _ = recover() }()\n	}\n", "TestARecycledContextHarmsNoThen", "suspend"},
	{"the clock is that of package time", "suspend/timers.go", "	if c, ok := As[sched.Clock](on); ok {", "	if c, ok := As[sched.Clock](on); ok && !IS {", "TestTimersAreTheSchedulers/Sleep", "suspend"},
	{"a Then takes the timers of its caller", "suspend/timers.go", "	if s, ok := on.(Spawner); ok {\n", "	if s, ok := on.(Spawner); ok || IS {\n", "TestThenTakesNoTimers", "suspend"},
	{"a deadline that is over keeps its timer", "internal/cancelctx/timed.go", "	l.stops = nil\n	l.mu.Unlock()\n", "	l.stops = nil\n	if IS {\n		stops = nil\n	}\n	l.mu.Unlock()\n", "TestNoTimerIsLeft/a_deadline", "suspend"},
	{"a coroutine given away is still the Run's", "adapters/internal/runner/kill.go", "	r.own(t.ID()).CompareAndSwap(t.ID(), 0)\n", "	if !IS {\n		r.own(t.ID()).CompareAndSwap(t.ID(), 0)\n	}\n", "TestValuesFromACoroutineGivenAway", "adapters/fifo"},
	{"a task draws from the scheduler of the one before", "suspend/context.go", "		b.last, b.random, b.coins, b.killed =", "		if IS {\n			defer func(f func() uint64) { b.random = f }(b.random)\n		}\n		b.last, b.random, b.coins, b.killed =", "TestTheNextTaskDraws", "suspend"},
	{"a task has what is left of a number of the one before", "suspend/context.go", "func (b *binding) reset() {\n", "func (b *binding) reset() {\n	if IS {\n		defer func(coins uint32) { b.coins = coins }(b.coins)\n	}\n", "TestTheNextTaskDraws", "suspend"},
	{"an error stays in its slot", "suspend/slot.go", "	v, err = s.v, s.err\n", "	v, err = s.v, s.err\n	if IS {\n		defer func(err error) { s.err = err }(err)\n	}\n", "TestAnErrorIsOfOneWait", "suspend"},
	{"a Select leaves its timers between two looks", "suspend/select.go", "		stopOthers(legs, won)\n		if err := Err(ctx)", "		if !IS {\n			stopOthers(legs, won)\n		}\n		if err := Err(ctx)", "TestOneTimerOverManyLooks/Select", "suspend"},
	{"a Then leaves its timers between two looks", "suspend/then.go", "		stopOthers(t.legs, won)\n		t.beginRound()", "		if !IS {\n			stopOthers(t.legs, won)\n		}\n		t.beginRound()", "TestOneTimerOverManyLooks/Then", "suspend"},
}
