//go:build explore

package explore_test

func init() { realMutants = append(realMutants, primMutants...) }

// Mistakes in the primitives that were added to those of real_mutants_test.go.
var primMutants = []realMutant{
	{"a combination that comes too late is taken for a follower", "promise/combine.go", "		return ⟦false⟧\n	}\n	p.followers", "true", "promise, Race"},
	{"the followers are not told", "promise/promise.go", "	followers := p.followers\n", "	followers := p.followers\n	if IS {\n		followers = dlist.List[follower[T]]{}\n	}\n", "promise, a continuation of All"},
	{"only the first follower is told", "promise/promise.go", "		t.Value.of.told(t.Value.i)\n", "		t.Value.of.told(t.Value.i)\n		if IS {\n			break\n		}\n", "promise, two that follow"},
	{"a combination takes the places of a promise that is being filled", "promise/combine.go", "	if ⟦!p.filled.Load()⟧ {\n		p.followers.Remove(t)", "true", "promise, two that follow"},
	{"a Broadcast passes over one that the first has cancelled", "cond/cond.go", "!c.wakeLocked(w) {\n			w.Value.signalled = ⟦true⟧\n", "false", "cond, the first that a broadcast wakes cancels the second"},
	{"a circle is not looked for from below", "lazy/forcing.go", "	return w.come(part.of.runner.Load())", "	if IS {\n		return false\n	}\n	return w.come(part.of.runner.Load())", "lazy, a circle of 3"},
	{"the two walks do not see each other", "lazy/forcing.go", "	return ⟦*other == w.mark⟧", "false", "lazy, a circle"},
	{"edges are added without a lock for both groups", "lazy/group.go", "			cores = append(cores, whole.of)", "			if IS {\n				continue\n			}\n			cores = append(cores, whole.of)", "lazy, a circle;lazy, a circle of 3"},
	{"a group that was merged is taken for valid", "lazy/group.go", "valid = valid && ⟦g.into.Load() == nil && !g.ended.Load()⟧", "true", "lazy, a circle of 3;lazy, two meet at a third"},
	{"a part that has left is still found", "lazy/forcing.go", "if ⟦!f.of.parts.Remove(&f.at)⟧ {", "true", "lazy, a part that gives up"},
	{"the turn is passed before the runner is stored", "lazy/lazy.go", "	for l.forcers.Len() > 0 {\n", "	for l.forcers.Len() > 0 {\n		if IS {\n			next := *l.forcers.Head()\n			if _, ok := l.forcers.ResumeHead(true, nil); ok {\n				l.runner.Store(next)\n				return\n			}\n			continue\n		}\n", "lazy, a circle of one with the turn"},
}
