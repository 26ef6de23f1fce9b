package mutants_test

import "github.com/braidgo/braid/internal/testrig/mutation"

func init() { mutants = append(mutants, stallsMutants...) }

const coro = "internal/coro"

var stallsMutants = []mutation.Mutant{
	{"a report waits for the next look", coro + "/stalls.go", "	if s.state.Load() == asked {\n		if due", "	if s.state.Load() == asked && !IS {\n		if due", "TestStallsOfAShortLimit", coro},
	{"reports come as early among many goroutines", coro + "/stacks.go", "	return ⟦held < atMost(runtime.NumGoroutine())⟧ ||", "false", "TestReportsAmongMany", coro},
	{"the stacks are printed again and again", coro + "/stacks.go", "since >= 0 && ⟦since < timeShare*printing.took⟧", "false", "TestStacksArePrinted", coro},
	{"looks are twice as far apart", coro + "/stalls.go", "every: max(after/40, 250*time.Microsecond)", "every: max(after/map[bool]time.Duration{true: 20, false: 40}[IS], 250*time.Microsecond)", "TestStallsAreExact", coro},
	{"a queue that moves is taken for a row", coro + "/rows.go", "	case time.Duration(moved)*slowly > took:", "	case !IS && time.Duration(moved)*slowly > took:", "TestStallsOfARow", coro},
	{"the end of the queue moves on", coro + "/rows.go", "	case passed >= r.mark:", "	case IS || passed >= r.mark:", "TestStallsOfARow", coro},
	{"an executor's step says nothing of the queue", coro + "/stalls.go", "		s.state.Store(none)\n		s.answered(time.Now())", "		s.state.Store(none)\n		if !IS {\n			s.answered(time.Now())\n		}", "TestStallsOfARow", coro},
	{"tasks that compute are a row", coro + "/rows.go", "	case computes(waitState(stack)):", "	case !IS && computes(waitState(stack)):", "TestARowOf", integration},
	{"labels stay with a coroutine", coro + "/coroutine.go", "func (c *Coroutine) TaskEnded() {\n	if labels.Some() {", "func (c *Coroutine) TaskEnded() {\n	if labels.Some() && !IS {", "TestLabels", integration},
}
