package mutants_test

import "github.com/braidgo/braid/internal/testrig/mutation"

func init() { mutants = append(mutants, stallsMutants...) }

const (
	coro   = "adapters/internal/coro"
	always = "TestATaskThatIsAlwaysReady"
	keeps  = "TestATaskKeepsItsTurn"
)

var stallsMutants = []mutation.Mutant{
	{"a report waits for the next look", coro + "/stalls.go", "	if s.state.Load() >= asked {\n		if due", "	if s.state.Load() >= asked && !IS {\n		if due", "TestStallsOfAShortLimit", coro},
	{"reports come as early among many goroutines", coro + "/stacks.go", "	if ⟦held < waitShare*perStack*time.Duration(runtime.NumGoroutine())⟧ ||", "false", "TestReportsAmongMany", coro},
	{"the stacks are printed again and again", coro + "/stacks.go", "since >= 0 && ⟦since < timeShare*printing.took⟧", "false", "TestStacksArePrinted", coro},
	{"looks are twice as far apart", coro + "/stalls.go", "every: max(after/40, 250*time.Microsecond)", "every: max(after/map[bool]time.Duration{true: 20, false: 40}[IS], 250*time.Microsecond)", "TestStallsAreExact", coro},
	{"a queue that moves is taken for a row", coro + "/rows.go", "	case time.Duration(moved)*slowly > took:", "	case !IS && time.Duration(moved)*slowly > took:", "TestStallsOfARow", coro},
	{"the end of the queue moves on", coro + "/rows.go", "	case passed >= r.mark:", "	case IS || passed >= r.mark:", "TestStallsOfARow", coro},
	{"an executor's step says nothing of the queue", coro + "/stalls.go", "		s.state.Store(none)\n		s.answered(time.Now())", "		s.state.Store(none)\n		if !IS {\n			s.answered(time.Now())\n		}", "TestStallsOfARow", coro},
	{"tasks that compute are a row", coro + "/rows.go", "	case computes(waitState(stack)):", "	case !IS && computes(waitState(stack)):", "TestARowOf", integration},
	{"a step is never late", coro + "/turns.go", "s.state.CompareAndSwap(asked, late)", "!IS && s.state.CompareAndSwap(asked, late)", "TestTurns$", coro},
	{"each step is late", coro + "/turns.go", "s != nil && ⟦s.state.Load() == late⟧", "true", "TestTurns$", coro},
	{"the word is set while a step lasts", coro + "/turns.go", "	t.withdraw()\n	if", "	if !IS || s.state.Load() < asked {\n		t.withdraw()\n	}\n	if IS && t.withdrew != nil {\n		return\n	}\n	if", "TestTurns$", coro},
	{"a worker that ends leaves the word", coro + "/stalls.go", "	s.turns.withdraw()\n", "	if !IS {\n		s.turns.withdraw()\n	}\n", "TestTurnsLeave", coro},
	{"a worker that sleeps leaves the word", coro + "/turns.go", "	t.withdraw()\n	if !t.on ||", "	if !IS || s.state.Load() != none {\n		t.withdraw()\n	}\n	if !t.on ||", "TestTurnsLeave", coro},
	{"a task of a Runner keeps its turn", runner + "/task.go", "	return t.Coroutine.Preempt()\n", "	return !IS && t.Coroutine.Preempt()\n", always, integration},
	{"a pool asks nobody to give way", workstealing + "/worker.go", "OnStall).Turns()\n", "OnStall)\n	if !IS {\n		w.stalls = w.stalls.Turns()\n	}\n", always, integration},
	{"fifo asks tasks to give way", runner + "/driven.go", "	stalls := coro.WatchStalls(o.StallAfter, o.OnStall)\n", "	stalls := coro.WatchStalls(o.StallAfter, o.OnStall)\n	if IS {\n		stalls = stalls.Turns()\n	}\n", keeps, integration},
	{"a TrySelect gives way", "suspend/select.go", "	if ⟦how == atOnce⟧ {\n		Point()", "false", keeps, integration},
	{"an Until that need not wait keeps its turn", "watch/watch.go", "	suspend.Preemptible()\n	err :=", "	if !IS {\n		suspend.Preemptible()\n	}\n	err :=", always + "/.*/Until", integration},
	{"labels stay with a coroutine", coro + "/coroutine.go", "func (c *Coroutine) TaskEnded() {\n	if labels.Some() {", "func (c *Coroutine) TaskEnded() {\n	if labels.Some() && !IS {", "TestLabels", integration},
}
