//go:build mutants

package mutants_test

func init() { mutants = append(mutants, stallsMutants...) }

const coro = "adapters/internal/coro"

var stallsMutants = []mutant{
	{"a report waits for the next look", coro + "/stalls.go", "	if s.state.Load() == asked {\n		if due", "	if s.state.Load() == asked && !Wrong {\n		if due", coro, "TestStallsOfAShortLimit"},
	{"looks are twice as far apart", coro + "/stalls.go", "every: max(after/40, 250*time.Microsecond)", "every: max(after/map[bool]time.Duration{true: 20, false: 40}[Wrong], 250*time.Microsecond)", coro, "TestStallsAreExact"},
	{"a queue that moves is taken for a row", coro + "/rows.go", "	case time.Duration(moved)*slowly > took:", "	case !Wrong && time.Duration(moved)*slowly > took:", coro, "TestStallsOfARow"},
	{"the end of the queue moves on", coro + "/rows.go", "	case passed >= r.mark:", "	case Wrong || passed >= r.mark:", coro, "TestStallsOfARow"},
	{"an executor's step says nothing of the queue", coro + "/stalls.go", "		s.state.Store(none)\n		s.answered(time.Now())", "		s.state.Store(none)\n		if !Wrong {\n			s.answered(time.Now())\n		}", coro, "TestStallsOfARow"},
	{"tasks that compute are a row", coro + "/rows.go", "	case computes(waitState(stack)):", "	case !Wrong && computes(waitState(stack)):", integration, "TestARowOf"},
	{"labels stay with a coroutine", coro + "/coroutine.go", "func (c *Coroutine) TaskEnded() {\n	labels.Clear()\n", "func (c *Coroutine) TaskEnded() {\n	if !Wrong {\n		labels.Clear()\n	}\n", integration, "TestLabels"},
}
