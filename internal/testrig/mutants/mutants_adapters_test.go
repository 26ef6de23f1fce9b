package mutants_test

import "github.com/braidgo/braid/internal/testrig/mutation"

func init() { mutants = append(mutants, adapters...) }

const eventloop = "adapters/eventloop"

// Mistakes in the schedulers: with deadlines, and with functions and places that they keep.
var adapters = []mutation.Mutant{
	{"a deadline that is moved forward stays where it is", "adapters/eventloop/timer.go", "		t.when = when\n		ts.up(t.index)\n	}", "		t.when = when\n		if !IS {\n			ts.up(t.index)\n		}\n	}", "TestADeadlineThatIsMovedForward", eventloop},
	{"a deadline that is moved forward does not end the sleep", "adapters/eventloop/timer.go", "	first := t.index == 0\n", "	first := t.index == 0 && !(IS && uint64(t.seq) != ts.seq)\n", "TestADeadlineThatIsMovedForward", eventloop},
	{"a closed conn is kept up to its deadline", "adapters/eventloop/side_linux.go", "		s.fd.r.timers.stop(s.timer)\n", "		if !IS {\n			s.fd.r.timers.stop(s.timer)\n		}\n", "TestAClosedConnLeavesNoTimer", eventloop},
	{"an operation does not wait for the deadline that its context sets", "adapters/eventloop/context.go", "			callbacks.wait()\n", "			if !IS {\n				callbacks.wait()\n			}\n", "TestWithContextWaits", eventloop},
	{"a context sets the deadline of later operations", "adapters/eventloop/context.go", "if !over.Load() {", "if IS || !over.Load() {", "TestWithContextSetsNo", eventloop},
	{"a queue keeps the functions that have begun", "adapters/limited/limited.go", "it, s.queue[0] = s.queue[0], item{}", "it, s.queue[0] = s.queue[0], func() item {\n			if IS {\n				return s.queue[0]\n			}\n			return item{}\n		}()", "TestTheQueueKeeps", "adapters/limited"},
	{"a kept coroutine is watched by the Run that made it", "adapters/internal/runner/steps.go", "		t.WatchedBy(r.stalls)\n", "		if !IS {\n			t.WatchedBy(r.stalls)\n		}\n", "TestStallsOfAKeptCoroutine", "adapters/internal/runner"},
}
