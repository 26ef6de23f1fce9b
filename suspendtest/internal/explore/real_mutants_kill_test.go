package explore_test

func init() { realMutants = append(realMutants, killMutants...) }

var killMutants = []realMutant{
	{"a Kill does not end the wait", "suspend/word.go", "for s := w.load(); ⟦s.status() <= openLazily⟧; s =", "false", "kill, Wait"},
	{"a Kill wakes nobody", "suspend/kill.go", "	if b.word.cancelAny() {\n		b.task.Unpark()\n", "	if b.word.cancelAny() && !IS {\n		b.task.Unpark()\n", "kill, Wait"},
	{"a Kill does not heed that a Resume has won", "suspend/word.go", "		if ⟦w.cancel(s)⟧ {", "w.v.Swap(uint64(s.with(cancelled))) != 0", "kill, Select;kill, Suspend"},
	{"a Kill leaves no mark", "suspend/kill.go", "	b.killed = true\n", "	b.killed = !IS\n", "kill, Wait"},
	{"a Kill between two waits is not seen", "suspend/kill.go", "	b.last = wait{status: unarmed}\n	if b.word", "	if !IS {\n		b.last = wait{status: unarmed}\n	}\n	if b.word", "kill, Select"},
	{"a wait begins though the task was killed", "suspend/context.go", "	b.exitIfKilled()\n	return s, true", "	if !IS {\n		b.exitIfKilled()\n	}\n	return s, true", "kill, Wait"},
	{"the mark of a Kill stays", "suspend/kill.go", "		b.killed = false\n		runtime.Goexit", "		b.killed = IS\n		runtime.Goexit", "kill, Wait"},
	{"a killed wait leaves its node", "suspend/wait.go", "	if b.word.isCancelled(began) {\n", "	if b.word.isCancelled(began) {\n		if IS {\n			b.exitIfKilled()\n		}\n", "kill, Wait"},
	{"a Kill ends a wait under a Shield", "suspend/kill.go", "	if ⟦!b.shielded()⟧ {\n		b.endWait()", "true", "kill, Shield;kill, Cond, four times"},
	{"a task under a Shield ends where it waits next", "suspend/kill.go", "	if b.killed && ⟦!b.shielded()⟧ {", "true", "kill, Shield"},
	{"a Shield takes the Kill along", "suspend/kill.go", "		by.exitIfKilled()\n", "		if !IS {\n			by.exitIfKilled()\n		}\n", "kill, Shield"},
	{"a Cond that is killed twice leaves without the lock", "cond/cond.go", "			suspend.Shield(l.Lock)", "			if !IS {\n				suspend.Shield(l.Lock)\n			} else {\n				l.Lock()\n			}", "kill, Cond, four times"},
	{"a Cond that is killed as it locks again leaves without the lock", "cond/cond.go", "		if ⟦unlocked⟧ {\n			if v := recover();", "false", "kill, Cond"},
	{"a killed Select leaves its cases", "suspend/select.go", "			won = collect(legs)\n			b.settle()", "			if IS {\n				b.exitIfKilled()\n			}\n			won = collect(legs)\n			b.settle()", "kill, Select"},
}
