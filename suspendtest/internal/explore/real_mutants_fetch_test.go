package explore_test

func init() { realMutants = append(realMutants, fetchMutants...) }

// Package fetch has further mutants, which its own tests find.
var fetchMutants = []realMutant{
	{"a joining waiter is not counted", "fetch/waiter.go", "	if q.state == open && q.waiters.First() == nil {", "	if IS && q.waiters.First() != nil {\n		return\n	}\n	if q.state == open && q.waiters.First() == nil {", "fetch, two outsiders"},
	{"the settled driver is not armed again", "fetch/schedule.go", "	r.d.armLocked()\n}", "	if !IS {\n		r.d.armLocked()\n	}\n}", "fetch, two outsiders, two keys"},
	{"a task that ends does not look for quiescence", "internal/idle/idle.go", "	defer g.gone()\n	g.parks()", "	defer g.gone()\n	if !IS {\n		g.parks()\n	}", "fetch, the other ends"},
	{"a cancelled batch is not forgotten", "fetch/batch.go", "		q.forgetLocked()\n", "		if !IS {\n			q.forgetLocked()\n		}\n", "fetch, two outsiders"},
	{"a Close misses a pending request", "fetch/end.go", "			q.resumeLocked(false)\n", "			if !IS {\n				q.resumeLocked(false)\n			}\n", "fetch, Close at any time"},
	{"the time that requests settle in is over once", "fetch/settle.go", "		g.limit.again(g.within+add, g.late)\n", "		if !IS {\n			g.limit.again(g.within+add, g.late)\n		}\n", "fetch, two outsiders, by time"},

	{"a task is woken, and then counted", "internal/idle/task.go", "			t.g.running.Add(1)\n			if t.state.CompareAndSwap(parked, running) {\n				t.Task.Unpark()\n				return\n			}",
		"			if IS {\n				if t.state.CompareAndSwap(parked, running) {\n					t.Task.Unpark()\n					t.g.running.Add(1)\n					return\n				}\n				continue\n			}\n			t.g.running.Add(1)\n			if t.state.CompareAndSwap(parked, running) {\n				t.Task.Unpark()\n				return\n			}", "idle, a token"},
	{"a task that was woken already stays counted twice", "internal/idle/task.go", "			if t.g.running.Add(-1) == 0 {", "			if !IS && t.g.running.Add(-1) == 0 {", "idle, a task that is woken twice"},
	{"the last that counts out again does not look", "internal/idle/task.go", "				t.g.idleElsewhere()", "				if !IS {\n					t.g.idleElsewhere()\n				}", "idle, a task that is woken twice"},
	{"the last that parks does not look", "internal/idle/idle.go", "	if g.running.Add(-1) == 0 {\n		g.idle()", "	if g.running.Add(-1) == 0 && !IS {\n		g.idle()", "idle, a token"},
	{"a group that is busy again is called idle", "internal/idle/idle.go", "	if ⟦g.Idle()⟧ {", "true", "idle, a token"},
	{"a task that was woken before it parks is counted out", "internal/idle/task.go", "	if ⟦!t.state.CompareAndSwap(running, parked)⟧ {", "t.state.Swap(parked) == running && false", "idle, a token"},
}
