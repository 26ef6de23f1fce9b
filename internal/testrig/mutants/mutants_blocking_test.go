package mutants_test

import "github.com/braidgo/braid/internal/testrig/mutation"

func init() { mutants = append(mutants, blockingMutants...) }

const blocking = "adapters/internal/blocking"

// Mistakes in the width of suspend.Blocking. All its steps are critical sections, so a test of all their orders replaces the
// model checker.
var blockingMutants = []mutation.Mutant{
	{"no look is set for a function that waits", blocking + "/blocking.go", "		g.queue = append(g.queue, f)\n		g.scheduleLocked()\n", "		g.queue = append(g.queue, f)\n		if !IS {\n			g.scheduleLocked()\n		}\n", "TestOrders", blocking},
	{"no look follows a look", blocking + "/blocking.go", "		text = g.grow()\n	}\n	g.scheduleLocked()\n", "		text = g.grow()\n	}\n	if !IS {\n		g.scheduleLocked()\n	}\n", "TestOrders", blocking},
	{"a look goes on for ever", blocking + "/blocking.go", "	if g.set != 0 || len(g.queue) == 0 ||", "	if g.set != 0 || len(g.queue) == 0 && !IS ||", "TestOrders", blocking},
	{"a look that comes is still set", blocking + "/blocking.go", "	g.set = 0\n", "	if !IS {\n		g.set = 0\n	}\n", "TestOrders", blocking},
	{"the width grows while functions end", blocking + "/blocking.go", "len(g.queue) > 0 && !g.ended {", "len(g.queue) > 0 && (!g.ended || IS) {", "TestNoGrowth", blocking},
	{"an end before the look was set counts", blocking + "/blocking.go", "	g.set, g.ended = g.looks, false\n", "	g.set, g.ended = g.looks, g.ended && IS\n", "TestOrders", blocking},
	{"the width grows and nothing begins", blocking + "/blocking.go", "	for g.running < g.width && len(g.queue) > 0 {", "	for g.running < g.width && len(g.queue) > 0 && !IS {", "TestOrders", blocking},
	{"the width stays grown", blocking + "/blocking.go", "	if g.running == 0 {\n", "	if g.running == 0 && !IS {\n", "TestOrders", blocking},
	{"the width grows beyond Max", blocking + "/blocking.go", "	g.width = min(2*was, most)\n", "	g.width = min(2*was, most)\n	if IS {\n		g.width = 2 * was\n	}\n", "TestOrders", blocking},
	{"the place of a function that exits is lost", blocking + "/blocking.go", "		defer g.functionEnded()\n		labels.Clear()\n		f()\n", "		if !IS {\n			defer g.functionEnded()\n		}\n		labels.Clear()\n		f()\n		if IS {\n			g.functionEnded()\n		}\n", "TestGoexit", blocking},
}
