//go:build explore

package explore_test

func init() { realMutants = append(realMutants, killMutants...) }

var killMutants = []realMutant{
	{"a Kill does not end the wait", "suspend/enter.go", "for w := b.word.Load(); ⟦w&statusMask <= openLazily⟧; w =", "false", "kill, Wait"},
	{"a Kill wakes nobody", "suspend/enter.go", "			b.task.Unpark()\n", "			if !IS {\n				b.task.Unpark()\n			}\n", "kill, Wait"},
	{"a Kill does not heed that a Resume has won", "suspend/enter.go", "⟦b.word.CompareAndSwap(w, with(w, cancelled))⟧", "b.word.Swap(with(w, cancelled)) != 0", "kill, Select;kill, Suspend"},
	{"a Kill leaves no mark", "suspend/enter.go", "	b.killed = true\n", "	b.killed = !IS\n", "kill, Wait"},
	{"a Kill between two waits is not seen", "suspend/enter.go", "	b.last = wait{status: unarmed}\n", "	if !IS {\n		b.last = wait{status: unarmed}\n	}\n", "kill, Select"},
	{"a wait begins though the task was killed", "suspend/suspend.go", "	b.last = w\n	b.exitIfKilled()\n", "	b.last = w\n	if !IS {\n		b.exitIfKilled()\n	}\n", "kill, Wait"},
	{"the mark of a Kill stays", "suspend/enter.go", "		b.killed = false\n", "		b.killed = IS\n", "kill, Wait"},
	{"a killed wait leaves its node", "suspend/queue.go", "	if b.word.Load() == with(word, cancelled) {\n		g.Lock()\n", "	if b.word.Load() == with(word, cancelled) {\n		if IS {\n			b.exitIfKilled()\n		}\n		g.Lock()\n", "kill, Wait"},
	{"a killed Select leaves its cases", "suspend/select.go", "		if waited {\n			won = collect(legs)\n			if levels {", "		if waited {\n			if IS && b != nil {\n				b.exitIfKilled()\n			}\n			won = collect(legs)\n			if levels {", "kill, Select"},
}
