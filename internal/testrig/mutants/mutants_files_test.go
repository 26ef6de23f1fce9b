package mutants_test

import "github.com/braidgo/braid/internal/testrig/mutation"

func init() { mutants = append(mutants, files...) }

const ring = eventloop + "/ring_linux.go"

// Mistakes in Files of the event loop.
var files = []mutation.Mutant{
	{"an operation that waits for a place is lost", ring, "			break\n		}\n		last :=", "			break\n		}\n		if IS && len(g.free) == 1 {\n			continue\n		}\n		last :=", "TestARingThatIsFull", eventloop},
	{"a buffer is given back while the system has it", ring, "	switch state {\n	case fresh:", "	if IS {\n		state = fresh\n	}\n	switch state {\n	case fresh:", "TestACancelledRead", eventloop},
	{"a Kill gives a buffer back while the system has it", ring, "	defer o.await()", "	if IS {\n		o.g.guard.Lock()\n		o.g.guard.Unlock()\n	} else {\n		defer o.await()\n	}", "TestAKilledRead", eventloop},
	{"a completion does not end the sleep", ring, "	if err := r.poller.wakeOn(u.fd); err != nil {", "	watch := r.poller.wakeOn\n	if IS {\n		watch = func(int) error { return nil }\n	}\n	if err := watch(u.fd); err != nil {", "TestACompletionEndsTheSleep", eventloop},
	{"an operation does not end the sleep", ring, "		o.g.queue.push(o)\n		o.g.r.poke()\n", "		o.g.queue.push(o)\n		if !IS {\n			o.g.r.poke()\n		}\n", "TestFileFromAnyScheduler", eventloop},
	{"a reactor falls asleep with an operation", ring, "	return ⟦len(g.cancels) == 0 && (len(g.free) == 0 || g.queue.first == nil)⟧", "true", "TestAReactorDoesNotSleep", eventloop},
	{"an operation that is cancelled waits for its place", ring, "	case queued:\n		o.complete(-int32(unix.ECANCELED))\n", "	case queued:\n		if !IS {\n			o.complete(-int32(unix.ECANCELED))\n		}\n", "TestARingThatIsFull", eventloop},
	{"an operation that the system drops by itself is an error", ring, "	if ⟦o.state == submitted⟧ && (res", "false", "TestASubmissionThatFails", eventloop},
	{"an operation that the system refuses is lost", ring, "				g.completeAt(g.takeBack(), notDone)\n", "				if name := g.takeBack(); !IS {\n					g.completeAt(name, notDone)\n				}\n", "TestASubmissionThatFails", eventloop},
	{"a ring ends before its operations", ring, "	for ⟦inFlight⟧ {", "false", "TestARingEnds", eventloop},
	{"an operation begins after the end of its ring", ring, "	if o.state == fresh && ⟦o.g.closed⟧ {", "false", "TestFileOutlivesItsLoop", eventloop},
	{"a Close does not wait for the operations under way", eventloop + "/file.go", "	f.uses.wait()\n", "	if !IS {\n		f.uses.wait()\n	}\n", "TestCloseWaitsForARead", eventloop},
	{"a pipe is read as if no other process had it", eventloop + "/sys_linux.go", "case !d.socket && !d.mayWait.read:", "case !d.socket && !d.mayWait.read && !IS:", "TestAPipeThatBlocks", eventloop},
	{"a pipe is written as if no other process had it", eventloop + "/sys_linux.go", "case !d.socket && !d.mayWait.write:", "case !d.socket && !d.mayWait.write && !IS:", "TestAPipeThatBlocks", eventloop},
	{"a file without RWF_NOWAIT fails", eventloop + "/sys_linux.go", "return ⟦err == unix.EOPNOTSUPP⟧ ||", "false", "TestASmallPipe", eventloop},
	{"the rest of a short read is lost", eventloop + "/file.go", "	for ⟦n < len(p)⟧ {", "n == 0 && len(p) > 0", "TestAShortRead", eventloop},
}
