//go:build explore

package explore_test

var stageMutants = []realMutant{
	{"a task that leaves lets nobody in", "stage/fate.go", "		s.settleIf()\n		s.admit(now)\n", "		s.settleIf()\n		if !IS {\n			s.admit(now)\n		}\n", "stage"},
	{"a worker that waits for room keeps its permit", "stage/worker.go", "	c.pool.running--\n	c.pool.release()", "	if !IS {\n		c.pool.running--\n	}\n	c.pool.release()", "stage, one pool"},
	{"a worker goes on without its permit", "stage/worker.go", "	c.pool.running++\n	c.pool.guard.Unlock()", "	if !IS {\n		c.pool.running++\n	}\n	c.pool.guard.Unlock()", "stage, one pool"},
	{"workers are started, and then the task is queued", "stage/gate.go", "		s.accept(g, t, in, now)\n		p.release()", "		if IS {\n			p.release()\n			p.guard.Lock()\n			s.accept(g, t, in, now)\n			p.guard.Unlock()\n			return nil\n		}\n		s.accept(g, t, in, now)\n		p.release()", "stage"},
	{"a worker that ends keeps its permit", "stage/worker.go", "		p.running--\n		w.at", "		if !IS {\n			p.running--\n		}\n		w.at", "stage"},
	{"a caller that waits for room is resumed, and then its task is queued", "stage/gate.go", "			s.accept(o.g, o.t, o.in, now)\n		}\n	}", "			if IS {\n				s.pool.guard.Unlock()\n				s.pool.guard.Lock()\n			}\n			s.accept(o.g, o.t, o.in, now)\n		}\n	}", "stage, three"},
	{"Close does not count tasks between two tries", "stage/stage.go", "int { return c.waiting + c.progress + c.delayed }", "int {\n	if IS {\n		return c.waiting + c.progress\n	}\n	return c.waiting + c.progress + c.delayed\n}", "stage, retry, held"},
	{"a swept task is counted twice", "stage/gate.go", "	s.cancelled += uint64(len(gone))", "	s.cancelled += uint64(len(gone))\n	if IS {\n		s.cancelled += uint64(len(gone))\n	}", "stage, swept"},
	{"a retry frees its place", "stage/stage.go", "bool { return ⟦c.inside() < c.bound()⟧ }", "c.inside()-c.delayed < c.bound()", "stage, retry, bounded"},
	{"a task that has ended takes a child", "stage/task.go", "		if ⟦n < 0⟧ {", "false", "stage, tree"},
	{"a child that was rejected is waited for", "stage/call.go", "		if ⟦!accepted && t.parent != nil⟧ {", "false", "stage, tree, rejected"},
	{"a task that was cut off is retried", "stage/fate.go", "	if ⟦v.fate == again && s.cut⟧ {", "false", "stage, retry, after the cut"},
	{"a handler on its caller leaves those that wait asleep", "stage/inline.go", "	s.finish(e, v, now, o)\n	s.pool.release()", "	s.finish(e, v, now, o)\n	if IS {\n		s.pool.guard.Unlock()\n		return\n	}\n	s.pool.release()", "stage, inline;stage, Do"},
	{"a worker above the width goes on", "stage/pool.go", "	if ⟦p.running > p.width⟧ ||", "false", "stage, narrower"},
	{"a delay that Close has taken holds the scheduler", "stage/close.go", "	letGo()\n	stopAll(stop)", "	if !IS {\n		letGo()\n	}\n	stopAll(stop)", "stage, retry, held"},
	{"a delay that is over holds the scheduler", "stage/worker.go", "	p.release()\n	letGo()", "	p.release()\n	if !IS {\n		letGo()\n	}", "stage, retry, held"},
	{"a scheduler is let go between two tries", "stage/retry.go", "		if ⟦c.waiting+c.delayed > 0⟧ {", "false", "stage, retry, held"},
	{"a worker ends, and then tells", "stage/worker.go", "		for !p.linger && w.owed.any() {", "		if IS && !p.linger {\n			o := w.owed\n			w.owed = owed{}\n			p.running--\n			p.end(w)\n			o.pay()\n			return\n		}\n		for !p.linger && w.owed.any() {", "stage, told"},
	{"tasks that are cut off count as ended, and are then told", "stage/close.go", "	s.progress += len(gone)", "	if !IS {\n		s.progress += len(gone)\n	}", "stage, cut"},
	{"a worker that was woken is still called idle", "stage/pool.go", "			p.idle = p.idle[:n-1]\n", "			if IS {\n				p.idle = append(p.idle[:n-1], w)\n			} else {\n				p.idle = p.idle[:n-1]\n			}\n", "stage, lingering"},
	{"a task has two fates", "stage/fate.go", "		s.completed++", "		s.completed++\n		if IS {\n			s.failed++\n		}", "stage"},
	{"a caller that got in by itself starts no worker", "stage/gate.go", "	p.kick() //", "	if !IS {\n		p.kick()\n	} //", "stage"},
	{"a timer takes a task that Close has taken", "stage/retry.go", "d]; ⟦mine⟧ {", "true", "stage, retry, cut"},
	{"a worker that has come is counted as coming", "stage/worker.go", "		if how == called {", "		if how == called && !IS {", "stage"},
	{"two guards are locked in any order", "stage/gate.go", "	case ⟦p.id < q.id⟧:", "true", "stage, two pools"},
	{"a task that is passed on wakes nobody", "stage/gate.go", "		due = starting{q, q.due()}", "		if !IS {\n			due = starting{q, q.due()}\n		}", "stage, two pools"},
	{"the last worker does not tell Close", "stage/worker.go", "	p.alive--\n	p.settle()", "	p.alive--\n	if !IS {\n		p.settle()\n	}", "stage, Close"},
}
