package explore_test

func init() { realMutants = append(realMutants, dialMutants...) }

// Mistakes in the calls of Open of package respool.
var dialMutants = []realMutant{
	{"an Acquire whose Open has served another waits for ever", "respool/dial.go", "		if ⟦p.waiting > p.open⟧ {", "false", "respool, an Open fails"},
	{"an Open that fails fails an Acquire that has an Open", "respool/dial.go", "	p.endOpenLocked(d)\n	to := &d.waits\n", "	p.endOpenLocked(d)\n	if IS {\n		p.open = 0\n	}\n	to := &d.waits\n", "respool, an Open fails"},
	{"an Acquire that is served as it is cancelled loses its resource", "respool/dial.go", "err != nil && ⟦!p.leave(d)⟧ {", "!p.leave(d) || true", "respool, an Open hangs, and another serves the last Acquire"},
	{"an Acquire that is served as it is killed loses its resource", "respool/dial.go", "p.leave(d) && ⟦d.result.r != nil⟧ {", "false", "respool, an Open hangs, and its Acquire is served for one that was killed"},
	{"a Close leaves an Open that begins late", "respool/dial.go", "	p.cancelUnwanted()\n	started = true\n", "	if !IS {\n		p.cancelUnwanted()\n	}\n	started = true\n", "respool, an Open hangs, and a Release serves its Acquire"},
	{"the last Acquire gives up, and leaves its Open", "respool/dial.go", "	p.cancelUnwanted()\n	return served\n", "	if !IS {\n		p.cancelUnwanted()\n	}\n	return served\n", "respool, an Open hangs"},
	{"an Open serves the last Acquire, and leaves another Open", "respool/dial.go", "	defer p.cancelUnwanted()\n	r.idle = suspend.Now()\n	preempt.", "	if !IS {\n		defer p.cancelUnwanted()\n	}\n	r.idle = suspend.Now()\n	preempt.", "respool, an Open hangs, and another serves the last Acquire"},
	{"a killed Acquire serves the last, and leaves an Open", "respool/dial.go", "	defer p.cancelUnwanted()\n	r.idle = suspend.Now()\n	r.use = 0\n", "	if !IS {\n		defer p.cancelUnwanted()\n	}\n	r.idle = suspend.Now()\n	r.use = 0\n", "respool, an Open hangs, and its Acquire is served for one that was killed"},
	{"a Close leaves an Open that nobody waits for", "respool/respool.go", "	p.cancelUnwanted()\n	_ = p.permits", "	if !IS {\n		p.cancelUnwanted()\n	}\n	_ = p.permits", "respool, an Open hangs"},
}
