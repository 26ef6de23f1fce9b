//go:build explore

package explore_test

func init() { realMutants = append(realMutants, primMutants...) }

// Mistakes in the primitives that were added to those of real_mutants_test.go.
var primMutants = []realMutant{
	{"a combination that comes too late is taken for a follower", "promise/follow.go", "		return false\n	}\n	if p.follow", "		return IS\n	}\n	if p.follow", "promise, Race"},
	{"the followers of a combination are not told", "promise/follow.go", "		fs.Append(&more)\n", "		if !IS {\n			fs.Append(&more)\n		}\n", "promise, a continuation of a chain"},
	{"only the first follower is told", "promise/follow.go", "	for n := fs.Pop(); n != nil; n = fs.Pop() {\n", "	for n := fs.Pop(); n != nil; n = fs.Pop() {\n		if IS {\n			fs = followers{}\n		}\n", "promise, a continuation of a chain"},
	{"a Broadcast passes over one that the first has cancelled", "cond/cond.go", "!c.wakeLocked(w) {\n			w.signalled = ⟦true⟧\n", "false", "cond, the first that a broadcast wakes cancels the second"},
}
