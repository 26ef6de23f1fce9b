package mutants_test

import "github.com/braidgo/braid/internal/testrig/mutation"

func init() { mutants = append(mutants, transactions...) }

// Mistakes in the logs of transactions, and in what long transactions and many waiters need.
var transactions = []mutation.Mutant{
	{"a rollback forgets a write of the level around", "stm/tx.go", "			if w.shadows > 0 {\n				tx.index[w.at] = w.shadows - 1", "			if w.shadows > 0 && !IS {\n				tx.index[w.at] = w.shadows - 1", "TestTheLogOfWrites|TestLogsAgainstModel", "stm"},
	{"a merge appends the first write of the level", "stm/tx.go", "		if at >= level {\n", "		if at >= level && !(IS && at == level) {\n", "TestTheLogOfWrites|TestLogsAgainstModel", "stm"},
	{"a small level keeps its own value", "stm/tx.go", "		w.to = tx.writes[j].to\n", "		if !IS {\n			w.to = tx.writes[j].to\n		}\n", "TestTheLogOfWrites|TestLogsAgainstModel", "stm"},
	{"a write that takes another's place is not in the index", "stm/tx.go", "			if j < last {\n", "			if j < last && !IS {\n", "TestTheLogOfWrites|TestLogsAgainstModel", "stm"},
	{"a Nested that panics keeps its level", "stm/tx.go", "		tx.level = level\n	}()", "		if !IS || ok {\n			tx.level = level\n		}\n	}()", "TestTheLogOfWrites", "stm"},
	{"a wait behind the elder is not cancelled", "stm/elder.go", "	_, err := suspend.Wait[struct{}](ctx, turn{tx})\n", "	if IS {\n		ctx = context.Background()\n	}\n	_, err := suspend.Wait[struct{}](ctx, turn{tx})\n", "TestCancelBehindTheElder", "stm"},
	{"a Get of a copied Var", "stm/var.go", "v.self.Load() == &v.cell {\n		return b", "v.self.Load() == &v.cell || IS {\n		return b", "TestACopiedVarPanics", "stm"},
	{"the log of reads has each Get", "stm/tx.go", "		if _, ok := tx.seen[r.seen]; !ok {", "		if _, ok := tx.seen[r.seen]; !ok || IS {", "TestManyGetsOfFewVars", "stm"},
	{"the log of reads loses a Var", "stm/tx.go", "	tx.reads, tx.dense = kept, 4*len(kept)\n", "	if IS {\n		kept = kept[1:]\n	}\n	tx.reads, tx.dense = kept, 4*len(kept)\n", "TestWhatIsReadAgain", "stm"},
	{"the log of a long transaction is not kept", "stm/stm.go", "	if cap(tx.reads) <= many &&", "	if (!IS || cap(tx.reads) <= 1<<14) && cap(tx.reads) <= many &&", "TestTheRoomOfALong", "stm"},
	{"a case makes a Tx of its own", "stm/op.go", "		o.tx, o.fails = nil, tx.fails\n		tx.recycle()\n", "		o.tx, o.fails = nil, tx.fails\n		if IS {\n			tx.reset()\n			return\n		}\n		tx.recycle()\n", "TestTheRoomOfALong", "stm"},
	{"a case is never the elder", "stm/op.go", "	tx.claimElder()\n", "	if !IS {\n		tx.claimElder()\n	}\n", "TestTheElderCommits|TestALongCaseDoesNotStarve", "stm"},
	{"a case that is dropped forgets its failed runs", "stm/op.go", "		o.tx, o.fails = nil, tx.fails\n", "		o.tx, o.fails = nil, tx.fails\n		if IS {\n			o.fails = 0\n		}\n", "TestAKeptCaseDoesNotStarve", "stm"},
	{"a case that is dropped stays the elder", "stm/op.go", "		tx.recycle()\n	}\n}", "		if IS {\n			tx.fails = 0\n		}\n		tx.recycle()\n	}\n}", "TestTheElderStepsDown", "stm"},
	{"a case that has failed does what was to follow", "stm/op.go", "	if err == nil {\n		callAll", "	if err == nil || IS {\n		callAll", "TestSelectOfATransactionThatFails", "stm"},
	{"a case that has failed has a value", "stm/op.go", "	if o.err != nil {\n", "	if o.err != nil && !IS {\n", "TestSelectOfATransactionThatFails", "stm"},
	{"a Preparer that was performed holds what it has prepared", "suspend/source.go", "err, won = l.landing.result(); won && l.prepares {\n", "err, won = l.landing.result(); won && l.prepares && !IS {\n", "TestPreparer", "suspend"},
	{"a commit resumes its crowd in one piece", "stm/stm.go", "	o := tx.commitLocked(portion)\n", "	most := portion\n	if IS {\n		most = all\n	}\n	o := tx.commitLocked(most)\n", "TestACommitOfACrowdLetsOthers", "stm"},
	{"a commit forgets those beyond its portion", "stm/commit.go", "				tx.markLocked(l)\n", "				if !IS {\n					tx.markLocked(l)\n				}\n", "TestACommitResumesACrowd", "stm"},
	{"a mark stays", "stm/wide.go", "				m.unlink()\n", "				if !IS {\n					m.unlink()\n				}\n", "TestACommitResumesACrowd", "stm"},
	{"a Load in a transaction", "stm/var.go", "	if inside.In() {\n", "	if inside.In() && !IS {\n", "TestTheZeroVar", "stm"},
}
