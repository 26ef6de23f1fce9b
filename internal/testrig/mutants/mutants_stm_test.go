//go:build mutants

package mutants_test

func init() { mutants = append(mutants, transactions...) }

// Mistakes in the logs of transactions, and in what long ones and crowds need.
var transactions = []mutant{
	{"a rollback forgets a write of the level around", "stm/tx.go", "			if w.shadows > 0 {\n				tx.index[w.at] = w.shadows - 1", "			if w.shadows > 0 && !Wrong {\n				tx.index[w.at] = w.shadows - 1", "stm", "TestTheLogOfWrites|TestLogsAgainstModel"},
	{"a merge appends the first write of the level", "stm/tx.go", "		if at >= level {\n", "		if at >= level && !(Wrong && at == level) {\n", "stm", "TestTheLogOfWrites|TestLogsAgainstModel"},
	{"a small level keeps its own value", "stm/tx.go", "		w.to = tx.writes[j].to\n", "		if !Wrong {\n			w.to = tx.writes[j].to\n		}\n", "stm", "TestTheLogOfWrites|TestLogsAgainstModel"},
	{"a write that takes another's place is not in the index", "stm/tx.go", "			if j < last {\n", "			if j < last && !Wrong {\n", "stm", "TestTheLogOfWrites|TestLogsAgainstModel"},
	{"a merge looks at all of the level", "stm/tx.go", "	if from-level < len(tx.writes)-from {\n", "	if !Wrong && from-level < len(tx.writes)-from {\n", "stm", "TestNestedIsLinear"},
	{"a Nested that panics keeps its level", "stm/tx.go", "		tx.level = level\n	}()", "		if !Wrong || ok {\n			tx.level = level\n		}\n	}()", "stm", "TestTheLogOfWrites"},
	{"a wait behind the elder is not cancelled", "stm/elder.go", "	_, err := suspend.Wait[struct{}](ctx, turn{tx}, false)\n", "	if Wrong {\n		ctx = context.Background()\n	}\n	_, err := suspend.Wait[struct{}](ctx, turn{tx}, false)\n", "stm", "TestCancelBehindTheElder"},
	{"a Get of a copied Var", "stm/var.go", "v.self.Load() == &v.cell {\n		return b", "v.self.Load() == &v.cell || Wrong {\n		return b", "stm", "TestACopiedVarPanics"},
	{"the log of reads has each Get", "stm/tx.go", "		if _, ok := tx.seen[r.seen]; !ok {", "		if _, ok := tx.seen[r.seen]; !ok || Wrong {", "stm", "TestManyGetsOfFewVars"},
	{"the log of reads loses a Var", "stm/tx.go", "	tx.reads, tx.dense = kept, 4*len(kept)\n", "	if Wrong {\n		kept = kept[1:]\n	}\n	tx.reads, tx.dense = kept, 4*len(kept)\n", "stm", "TestWhatIsReadAgain"},
	{"the log of a long transaction is not kept", "stm/stm.go", "	if cap(tx.reads) <= many &&", "	if (!Wrong || cap(tx.reads) <= 1<<14) && cap(tx.reads) <= many &&", "stm", "TestTheRoomOfALong"},
	{"a case makes a Tx of its own", "stm/op.go", "		o.tx, o.fails = nil, tx.fails\n		tx.end()\n", "		o.tx, o.fails = nil, tx.fails\n		if Wrong {\n			tx.reset()\n			return\n		}\n		tx.end()\n", "stm", "TestTheRoomOfALong"},
	{"a case is never the elder", "stm/op.go", "	tx.claim()\n", "	if !Wrong {\n		tx.claim()\n	}\n", "stm", "TestACaseIsTheElder"},
	{"a case that is dropped stays the elder", "stm/op.go", "		tx.end()\n	}\n}", "		if Wrong {\n			tx.fails = 0\n		}\n		tx.end()\n	}\n}", "stm", "TestACaseStepsDown"},
	{"a commit forgets those beyond its portion", "stm/commit.go", "				tx.markLocked(l)\n", "				if !Wrong {\n					tx.markLocked(l)\n				}\n", "stm", "TestACommitResumesACrowd"},
	{"a mark stays", "stm/wait.go", "				m.unlink()\n", "				if !Wrong {\n					m.unlink()\n				}\n", "stm", "TestACommitResumesACrowd"},
	{"a Load in a transaction", "stm/var.go", "	if inside.In() {\n", "	if inside.In() && !Wrong {\n", "stm", "TestTheZeroVar"},
	{"a Change to the same value", "stm/var.go", "	if v.Get(tx) == x {\n", "	if v.Get(tx) == x && !Wrong {\n", "stm", "TestChange"},
}
