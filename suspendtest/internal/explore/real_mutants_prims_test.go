package explore_test

func init() { realMutants = append(realMutants, primMutants...) }

// Further mistakes in the primitives, in addition to those of real_mutants_test.go.
var primMutants = []realMutant{
	{"a combination that comes too late is taken for a follower", "promise/combine.go", "	return ⟦!filled⟧\n", "true", "promise, Race"},
	{"the followers are not woken", "promise/promise.go", "	followers := p.followers\n", "	followers := p.followers\n	if IS {\n		followers = dlist.List[follower]{}\n	}\n", "promise, a continuation of All"},
	{"only the first follower is woken", "promise/promise.go", "		t.Value.of.told(t.Value.i)\n", "		t.Value.of.told(t.Value.i)\n		if IS {\n			break\n		}\n", "promise, two that follow"},
	{"a Broadcast passes over one that the first has cancelled", "cond/cond.go", "!c.wakeLocked(w) {\n			w.Value.signalled = ⟦true⟧\n", "false", "cond, the first that a broadcast wakes cancels the second"},
	{"a part waits and is not listed", "lazy/forcing.go", "		f.of.waiting.Push(&f.at)\n", "		if !IS {\n			f.of.waiting.Push(&f.at)\n		}\n", "lazy, a cycle of 3"},
	{"a look passes over forcings that an earlier look has seen", "lazy/forcing.go", "	waits.looks++\n", "	if !IS || waits.looks == 0 {\n		waits.looks++\n	}\n", "lazy, a cycle of 3"},
	{"a look ends with what the part is part of", "lazy/forcing.go", "			for n := whole.of.waiting.First(); ⟦n != nil⟧; n", "false", "lazy, a cycle"},
	{"a part is not counted", "lazy/forcing.go", "		f.count(1)\n", "		if !IS {\n			f.count(1)\n		}\n", "lazy, a cycle"},
	{"a part that has left is still found", "lazy/forcing.go", "		f.unlist()\n		waits", "		if !IS {\n			f.unlist()\n		}\n		waits", "lazy, a part that gives up"},
	{"a part that is refused is found by others", "lazy/forcing.go", "				f.unlist()", "				if !IS {\n					f.unlist()\n				}", "lazy, a cycle"},
}
