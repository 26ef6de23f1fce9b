//go:build explore

package explore_test

func init() { realMutants = append(realMutants, fetchMutants...) }

// The list of package fetch has more of them, which its tests find.
var fetchMutants = []realMutant{
	{"a joining waiter is not counted", "fetch/request.go", "	if q.needed++; q.needed > 1 {", "	if IS && q.needed > 0 {\n		return\n	}\n	if q.needed++; q.needed > 1 {", "fetch, two outsiders"},
	{"the settled driver is not armed again", "fetch/driver.go", "	r.d.armLocked()\n", "	if !IS {\n		r.d.armLocked()\n	}\n", "fetch, two outsiders, two keys"},
	{"a task that ends does not look for quiescence", "idle/idle.go", "	g.parks()\n	g.gone()", "	if !IS {\n		g.parks()\n	}\n	g.gone()", "fetch, the other ends"},
	{"a cancelled batch is not forgotten", "fetch/batch.go", "	b.self.forgetLocked()\n", "	if !IS {\n		b.self.forgetLocked()\n	}\n", "fetch, two outsiders"},
	{"a Close misses a request that is being sent", "fetch/driver.go", "		d.releaseLocked()\n		return nil", "		if !IS {\n			d.releaseLocked()\n		}\n		return nil", "fetch, Close at any time"},
	{"the time that requests settle in is over once", "fetch/settled.go", "		g.limit.again()\n", "		if !IS {\n			g.limit.again()\n		}\n", "fetch, two outsiders, by time"},
}
