//go:build explore

package explore_test

func init() { realMutants = append(realMutants, primMutants...) }

// Mistakes in the primitives that were added to those of real_mutants_test.go.
var primMutants = []realMutant{
	{"a combination that comes too late is taken for a follower", "promise/follow.go", "		return false\n	}\n	if p.follow", "		return IS\n	}\n	if p.follow", "promise, Race"},
	{"the followers of a combination are not told", "promise/follow.go", "		fs.Append(&more)\n", "		if !IS {\n			fs.Append(&more)\n		}\n", "promise, a continuation of a chain"},
	{"only the first follower is told", "promise/follow.go", "	for n := fs.Pop(); n != nil; n = fs.Pop() {\n", "	for n := fs.Pop(); n != nil; n = fs.Pop() {\n		if IS {\n			fs = followers{}\n		}\n", "promise, a continuation of a chain"},
	{"a Broadcast passes over one that the first has cancelled", "cond/cond.go", "!c.wakeLocked(w) {\n			w.Value.signalled = ⟦true⟧\n", "false", "cond, the first that a broadcast wakes cancels the second"},
	{"a circle is not looked for from below", "lazy/forcing.go", "	return w.come(part.of.runner.Load())", "	if IS {\n		return false\n	}\n	return w.come(part.of.runner.Load())", "lazy, a circle of 3"},
	{"the two walks do not see each other", "lazy/forcing.go", "	return ⟦*other == w.mark⟧", "false", "lazy, a circle"},
	{"edges are added without a lock for both groups", "lazy/group.go", "			cores = append(cores, whole.of)", "			if IS {\n				continue\n			}\n			cores = append(cores, whole.of)", "lazy, a circle;lazy, a circle of 3"},
	{"a group that was merged is taken for valid", "lazy/group.go", "valid = valid && ⟦g.into.Load() == nil && !g.ended.Load()⟧", "true", "lazy, a circle of 3;lazy, two meet at a third"},
	{"a part that has left is still found", "lazy/forcing.go", "if ⟦!f.of.parts.Remove(&f.at)⟧ {", "true", "lazy, a part that gives up"},
	{"the turn is passed before the runner is stored", "lazy/lazy.go", "	for l.forcers.Len() > 0 {\n", "	for l.forcers.Len() > 0 {\n		if IS {\n			next := *l.forcers.Head()\n			if _, ok := l.forcers.ResumeHead(true, nil); ok {\n				l.runner.Store(next)\n				return\n			}\n			continue\n		}\n", "lazy, a circle of one with the turn"},
}
