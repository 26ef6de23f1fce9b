//go:build mutants

package mutants_test

func init() { mutants = append(mutants, blockingMutants...) }

const blocking = "adapters/internal/blocking"

// The growth of the width of suspend.Blocking. All its steps are critical sections, so a test of all their orders replaces the model
// checker.
var blockingMutants = []mutant{
	{"no look is set for a function that waits", blocking + "/blocking.go", "		g.queue = append(g.queue, f)\n		g.watch()\n", "		g.queue = append(g.queue, f)\n		if !Wrong {\n			g.watch()\n		}\n", blocking, "TestOrders"},
	{"no look follows a look", blocking + "/blocking.go", "		text = g.grow()\n	}\n	g.watch()\n", "		text = g.grow()\n	}\n	if !Wrong {\n		g.watch()\n	}\n", blocking, "TestOrders"},
	{"a look goes on for ever", blocking + "/blocking.go", "	if g.set != 0 || len(g.queue) == 0 ||", "	if g.set != 0 || len(g.queue) == 0 && !Wrong ||", blocking, "TestOrders"},
	{"a look that comes is still set", blocking + "/blocking.go", "	g.set = 0\n", "	if !Wrong {\n		g.set = 0\n	}\n", blocking, "TestOrders"},
	{"the width grows while functions end", blocking + "/blocking.go", "len(g.queue) > 0 && !g.ended {", "len(g.queue) > 0 && (!g.ended || Wrong) {", blocking, "TestNoGrowth"},
	{"an end before the look was set counts", blocking + "/blocking.go", "	g.set, g.ended = g.looks, false\n", "	g.set, g.ended = g.looks, g.ended && Wrong\n", blocking, "TestOrders"},
	{"the width grows and nothing begins", blocking + "/blocking.go", "	for g.running < g.width && len(g.queue) > 0 {", "	for g.running < g.width && len(g.queue) > 0 && !Wrong {", blocking, "TestOrders"},
	{"the width stays grown", blocking + "/blocking.go", "	if g.running == 0 {\n", "	if g.running == 0 && !Wrong {\n", blocking, "TestOrders"},
	{"the width grows beyond Max", blocking + "/blocking.go", "	g.width = min(2*was, most)\n", "	g.width = min(2*was, most)\n	if Wrong {\n		g.width = 2 * was\n	}\n", blocking, "TestOrders"},
	{"the place of a function that exits is lost", blocking + "/blocking.go", "		defer g.end()  // f may exit the goroutine\n		labels.Clear() // those of the function before\n		f()\n", "		if !Wrong {\n			defer g.end() // f may exit the goroutine\n		}\n		labels.Clear()\n		f()\n		if Wrong {\n			g.end()\n		}\n", blocking, "TestGoexit"},
}
