//go:build mutants

package mutants_test

func init() { mutants = append(mutants, adapters...) }

const eventloop = "adapters/eventloop"

// Mistakes in the schedulers: with deadlines, and with functions and places that they keep.
var adapters = []mutant{
	{"a deadline that is moved forward stays where it is", "adapters/eventloop/timer.go", "		t.when = when\n		ts.up(t.index)\n	}", "		t.when = when\n		if !Wrong {\n			ts.up(t.index)\n		}\n	}", eventloop, "TestADeadlineThatIsMovedForward"},
	{"a deadline that is moved forward does not end the sleep", "adapters/eventloop/timer.go", "	first := t.index == 0\n", "	first := t.index == 0 && !(Wrong && uint64(t.seq) != ts.seq)\n", eventloop, "TestADeadlineThatIsMovedForward"},
	{"a closed conn is kept up to its deadline", "adapters/eventloop/side_linux.go", "		s.fd.r.timers.stop(s.timer)\n", "		if !Wrong {\n			s.fd.r.timers.stop(s.timer)\n		}\n", eventloop, "TestAClosedConnLeavesNoTimer"},
	{"an operation does not wait for the deadline that its context sets", "adapters/eventloop/context.go", "			callbacks.wait()\n", "			if !Wrong {\n				callbacks.wait()\n			}\n", eventloop, "TestWithContextWaits"},
	{"a context sets the deadline of later operations", "adapters/eventloop/context.go", "if !over.Load() {", "if Wrong || !over.Load() {", eventloop, "TestWithContextSetsNo"},
	{"a queue keeps the functions that have begun", "adapters/limited/limited.go", "it, s.queue[0] = s.queue[0], item{}", "it, s.queue[0] = s.queue[0], func() item {\n			if Wrong {\n				return s.queue[0]\n			}\n			return item{}\n		}()", "adapters/limited", "TestTheQueueKeeps"},
	{"a kept coroutine is watched by the Run that made it", "adapters/internal/runner/steps.go", "		t.WatchedBy(r.stalls)\n", "		if !Wrong {\n			t.WatchedBy(r.stalls)\n		}\n", "adapters/internal/runner", "TestStallsOfAKeptCoroutine"},
}
