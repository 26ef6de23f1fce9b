package explore_test

func init() { realMutants = append(realMutants, stmMutants...) }

var stmMutants = []realMutant{
	{"a commit does not look whether its reads are valid", "stm/commit.go", "	case ⟦!tx.validLocked()⟧:", "false", "stm, increments"},
	{"a waiter does not look before it is linked", "stm/wait.go", "	return struct{}{}, ⟦!c.tx.unchangedLocked(len(c.tx.reads))⟧, nil", "false", "stm, retry"},
	{"a wide waiter does not see a commit to a Var that it is linked to", "stm/wait.go", "				tx.changed, tx.waiter = ⟦true⟧, nil", "false", "stm, a wide wait, the first changes;stm, a wide case, the first changes"},
	{"a wide waiter does not look before it is linked", "stm/wait.go", "	for _, b := range tx.reads[tx.linked:to] {\n		if ⟦!b.current()⟧ {", "false", "stm, a wide wait;stm, a wide case"},
	{"a wide waiter is not unlinked", "stm/stm.go", "	if ⟦tx.wide⟧ {", "false", "stm, a wide wait"},
	{"the clock is published before the boxes", "stm/commit.go", "	for _, w := range tx.writes {\n		w.of.publish(w.to, now)",
		"	if IS {\n		clock.Store(now)\n	}\n	for _, w := range tx.writes {\n		w.of.publish(w.to, now)", "stm, opacity"},
	{"a Get does not look at the version", "stm/var.go", "	for ⟦b.version > tx.now⟧ {", "false", "stm, opacity"},
	{"a waiter of several Vars is passed over", "stm/wait.go", "if tx := n.Value; ⟦tx != nil⟧ {", "tx != nil && len(tx.nodes) < 2", "stm, OrElse"},
	{"only the first Var is watched", "stm/wait.go", "if last := l.Last(); ⟦last != nil && last.Value == tx⟧ {", "len(tx.nodes) > 0 && last == last", "stm, OrElse"},
	{"a branch that returns Retry is not rolled back", "stm/tx.go", "			tx.rollback(writes)\n", "			if !IS {\n				tx.rollback(writes)\n			}\n", "stm, OrElse, rolled back"},

	{"a snapshot is extended without a look", "stm/tx.go", "		if ⟦!b.current()⟧ {\n			tx.now, tx.doomed", "false", "stm, opacity;stm, extension"},
	{"a box is not loaded again after an extension", "stm/var.go", "		tx.extend(b.version)\n		b = v.load()\n",
		"		tx.extend(b.version)\n		if IS {\n			break\n		}\n		b = v.load()\n", "stm, opacity, two commits"},
	{"a snapshot is extended to the middle of a commit", "stm/tx.go", "	if now < version {", "	if now < version && IS {\n		now = version\n	} else if now < version {", "stm, opacity, two commits;stm, extension"},
	{"a Load sees a part of a commit", "stm/var.go", "if ⟦b.version > clock.Load()⟧ {", "false", "stm, Load"},
	{"a commit wakes nobody", "stm/commit.go", "		if l := &w.at.watched; ⟦l.First() != nil⟧ {", "false", "stm, retry"},
	{"a commit owes nothing to those beyond its portion", "stm/stm.go", "	if ⟦len(tx.nodes) > 0⟧ {\n		tx.wakeRest()", "false", "stm, retry, two consumers"},
	{"a commit wakes one", "stm/wait.go", "		n = next\n", "		if IS && n.Value == nil {\n			return 1\n		}\n		n = next\n", "stm, retry, two consumers"},
	{"a doomed run is taken for one that has ended", "stm/stm.go", "	case ⟦tx.doomed⟧:\n		return conflict, nil\n	case err == nil:\n		return tx.commit(), nil", "false", "stm, a swallowed conflict;stm, extension"},
	{"the functions of a dropped run are called", "stm/stm.go", "	if ⟦len(tx.hooks) > 0⟧ {\n		tx.hooks = nil\n	}\n	tx.level", "false", "stm, AfterCommit"},
	{"the functions of a failed branch are called", "stm/tx.go", "			tx.hooks = tx.hooks[:hooks]\n", "			if !IS {\n				tx.hooks = tx.hooks[:hooks]\n			}\n", "stm, AfterCommit"},

	{"a case waits for what has changed already", "stm/op.go", "		if ⟦o.tx.unchangedLocked(len(o.tx.reads))⟧ {", "true", "stm, Select of two transactions"},
	{"a case that asks for another look has won", "suspend/source.go", "	return won != none && ⟦legs[won].prepares⟧ &&", "false", "stm, Select of two transactions"},
	{"a Select does not prepare what it looks at again", "suspend/select.go", "	for {\n		prepare(legs)\n", "	for n := 0; ; n++ {\n		if !IS || n == 0 {\n			prepare(legs)\n		}\n", "stm, Select of two transactions"},
	{"a Then does not prepare what it looks at", "suspend/then.go", "	if ⟦t.prepares⟧ {\n		prepare(", "false", "stm, Then"},
	{"a Then that asks for another look has won", "suspend/then.go", "	if t.prepares && ⟦wantsAgain(t.legs, won)⟧ {", "false", "stm, Then"},
	{"a Then that looks again has ended before", "suspend/then.go", "	t.state.Store(uint64(began.with(0)))", "	if old := t.state.Load(); !IS || old == 0 {\n		t.state.Store(uint64(began.with(0)))\n	}", "stm, Then, two of one"},
	{"a Then that looks again does not see that it is cancelled", "suspend/then.go", "e != (end{}) {\n		t.register", "e != (end{}) && !(IS && began >= 2*generation) {\n		t.register", "stm, Then"},
	{"a Then that looks again has the winner of before", "suspend/then.go", "	t.winner, t.waited = none, false\n", "	if !IS || began < 2*generation {\n		t.winner, t.waited = none, false\n	}\n", "stm, Then"},

	{"others commit before the elder", "stm/commit.go", "	case ⟦elder != nil && elder != tx && !tx.overtakes⟧:", "false", "stm, the elder"},
	{"the elder wakes nobody", "stm/elder.go", "		younger.wakeLocked(nil, all)\n", "		if !IS {\n			younger.wakeLocked(nil, all)\n		}\n", "stm, the elder"},
	{"a case does not wait behind the elder, but for a change", "stm/op.go", "	if ⟦o.ran == retry⟧ {", "true", "stm, a case behind the elder"},
	{"the elder never ends", "stm/elder.go", "		elder = nil\n", "		if !IS {\n			elder = nil\n		}\n", "stm, the elder"},
}
