//go:build explore

package explore_test

func init() { realMutants = append(realMutants, fetchMutants...) }

// The list of package fetch has more of them, which its tests find.
var fetchMutants = []realMutant{
	{"a joining waiter is not counted", "fetch/schedule.go", "	if q.state == open && q.waiters.First() == nil {", "	if IS && q.waiters.First() != nil {\n		return\n	}\n	if q.state == open && q.waiters.First() == nil {", "fetch, two outsiders"},
	{"the settled driver is not armed again", "fetch/schedule.go", "	r.d.armLocked()\n}", "	if !IS {\n		r.d.armLocked()\n	}\n}", "fetch, two outsiders, two keys"},
	{"a task that ends does not look for quiescence", "idle/idle.go", "	g.parks()\n	g.gone()", "	if !IS {\n		g.parks()\n	}\n	g.gone()", "fetch, the other ends"},
	{"a cancelled batch is not forgotten", "fetch/batch.go", "		q.forgetLocked()\n", "		if !IS {\n			q.forgetLocked()\n		}\n", "fetch, two outsiders"},
	{"a Close misses a pending request", "fetch/schedule.go", "			q.resumeLocked(false)\n", "			if !IS {\n				q.resumeLocked(false)\n			}\n", "fetch, Close at any time"},
	{"the time that requests settle in is over once", "fetch/settle.go", "		g.limit.again()\n", "		if !IS {\n			g.limit.again()\n		}\n", "fetch, two outsiders, by time"},
}
