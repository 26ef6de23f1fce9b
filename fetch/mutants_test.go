package fetch_test

import (
	"testing"

	"github.com/braidgo/braid/internal/testrig/mutation"
)

var mutants = []mutation.Mutant{
	{"a joining waiter is not counted", "schedule.go", "	w.left++\n", "	if !IS || q.waiters.First() == &l.Node {\n		w.left++\n	}\n", "TestHostilePrograms$"},
	{"the first error in time", "combine.go", "&& i < g.failed {", "&& (i < g.failed && !IS || g.failed == g.n) {", "TestRandomPrograms$"},
	{"an item that fails cancels those before it", "combine.go", "&& g.next >= g.failed; decided {", "&& (g.next >= g.failed || IS); decided {", "TestRandomPrograms$"},
	{"a failed item cancels nothing", "combine.go", "		g.cancelLocked()\n	}", "		if !IS {\n			g.cancelLocked()\n		}\n	}", "TestFirstErrorInOrder$"},
	{"items after a failed one are begun", "combine.go", "if i = g.claimed; i < g.failed {", "if i = g.claimed; i < g.failed || IS && i < g.n {", "TestFirstErrorInOrder$"},
	{"no second look at contexts", "schedule.go", "bool { return !w.lookAtContext() })", "bool { return !w.lookAtContext() || IS })", "TestLastWaiterGoesBeforeDispatch$"},
	{"the driver is not armed again", "schedule.go", "	r.d.armLocked()\n}", "	if !IS {\n		r.d.armLocked()\n	}\n}", "TestAnInlineSourceThatExitsKeepsNobodyWaiting$"},
	{"strangers get no answer", "batch.go", "			q.resumeLocked(true)\n", "			if !IS {\n				q.resumeLocked(true)\n			}\n", "TestGetByAStranger$"},
	{"a request does not move to a stranger", "schedule.go", "q.d != w.d && w.d.settled:", "q.d != w.d && w.d.settled && !IS:", "TestAStrangerGetsAllItsKeys$"},
	{"a cancelled batch is not forgotten", "batch.go", "	b.cancelled = true\n", "	b.cancelled = true\n	if IS {\n		return\n	}\n", "TestAnEffectInTheQueueIsDropped$"},
	{"a batch that nobody needs goes on", "schedule.go", "if b.needed--; b.needed == 0 {", "if b.needed--; b.needed == 0 && !IS {", "TestAnEffectInTheQueueIsDropped$"},
	{"a cancelled batch stays open", "batch.go", "	next = b.t.nextLocked()\n	b.overLocked()", "	next = b.t.nextLocked()\n	if !(IS && b.cancelled) {\n		b.overLocked()\n	}", "TestHostilePrograms$"},
	{"answers are handed out as batches arrive", "schedule.go", "		if d.policy == Eager {", "		if d.policy == Eager || IS {", "TestBlog$"},
	{"the round is over before its answers are handed out", "schedule.go", "	r.handLocked(false)\n	r.overLocked()\n	r.d.rouse", "	if IS {\n		r.overLocked()\n		for n := r.requests.First(); n != nil; n = n.Next() {\n			q := n.Value\n			if q.state == back {\n				q.doneLocked()\n			}\n			for n := q.waiters.First(); n != nil && q.state == done; n = q.waiters.First() {\n				w := n.Value\n				q.waiters.Pop()\n				if w.left--; w.left == 0 {\n					w.r.Resume(struct{}{}, nil)\n					r.d.s.guard.Unlock()\n					for range 10 {\n						gosched()\n					}\n					r.d.s.guard.Lock()\n				}\n			}\n		}\n	}\n	r.handLocked(false)\n	r.overLocked()\n	r.d.rouse", "TestBlogOnEveryScheduler$"},
	{"an ordered round is handed out from elsewhere", "schedule.go", "if r.d.ordered && r.handLocked(true) {", "if r.d.ordered && !IS && r.handLocked(true) {", "TestARoundIsHandedOutBeforeItsTasksGoOn$"},
	{"a round is counted though nothing was sent", "schedule.go", "	d.state = quiet\n	if list.First() == nil {", "	d.state = quiet\n	if IS && list.First() == nil {\n		d.s.stats.Rounds++\n	}\n	if list.First() == nil {", "TestLastWaiterGoesBeforeDispatch$"},
	{"a frame is told by a goroutine", "session.go", "{ return cancelctx.AfterFunc(f.Context, g) }", "{\n	if IS {\n		return context.AfterFunc(f.Context, g)\n	}\n	return cancelctx.AfterFunc(f.Context, g)\n}", "TestAnItemsContextTellsAtOnce$"},
	{"a cancellation is remembered", "source.go", "errors.Is(err, context.Canceled)\n", "errors.Is(err, context.Canceled) && !IS\n", "TestADirectSourceReturnsWhatIsNotRemembered$"},
	{"a transient error is remembered", "source.go", "errors.As(err, new(*transient))", "!IS && errors.As(err, new(*transient))", "TestADirectSourceReturnsWhatIsNotRemembered$"},
	{"a Memo remembers a transient error", "memo.go", "				if t[k] == v {", "				if t[k] == v && !IS {", "TestMemoOfATransientError$"},
	{"a Memo remembers a value of a cancelled task", "memo.go", "case cancelled != nil && err == nil:", "case cancelled != nil && err == nil && !IS:", "TestMemoOfACancelledItem$"},
	{"equal effects are answered out of order", "batch.go", "for b.b.t.write && b.at", "for !IS && b.b.t.write && b.at", "TestEffectsWithEqualKeysAreAnsweredInOrder$"},
	{"writes go out with reads", "schedule.go", "		list = &d.writes\n	}", "		list = &d.writes\n	} else if IS {\n		list.Append(&d.writes)\n	}", "TestAnEffectWaitsForTheTasksOfAnInlineBatch$"},
	{"an effect is cancelled with its caller", "schedule.go", "q.state == open && !(", "q.state == open && !(!IS && ", "TestCancelledEffect$"},
	{"MaxOpen is not looked at", "batch.go", "return t.opts.MaxOpen > 0 &&", "return !IS && t.opts.MaxOpen > 0 &&", "TestMaxOpenHoldsForASourceThatItsCallerRuns$"},
	{"the next batch does not begin", "batch.go", "	if len(t.queue) == 0 {", "	if len(t.queue) == 0 || IS {", "TestMaxOpenHoldsForASourceThatItsCallerRuns$"},
	{"a Run does not wait for its batches", "schedule.go", "return v, d.batches.First() == nil, nil", "return v, d.batches.First() == nil || IS, nil", "TestCloseReachesABatchOfARunThatEnds$"},
	{"what others wait for ends with the Run", "schedule.go", "			if !d.s.ended {", "			if !d.s.ended && IS {\n				list.Pop()\n				continue\n			}\n			if !d.s.ended {", "TestRequestOutlivesItsRun$"},
	{"a session that has ended answers", "get.go", "e.state == done && !s.ended {", "e.state == done && (!s.ended || IS) {", "TestAfterTheEnd$"},
	{"Forget drops a request that is not sent", "prime.go", "e != nil && e.state != pending", "e != nil && (e.state != pending || IS)", "TestPrimeAndForget$"},
	{"a thunk starts no other", "thunk.go", "if other != l {", "if other != l && !IS {", "TestLater$"},
	{"a function that exits takes others with it", "thunk.go", "		on := suspend.Here()\n", "		on := suspend.Here()\n		if IS {\n			l.force()\n		}\n", "TestLater$"},
	{"an effect in the queue is sent without its caller", "schedule.go", "b.started):", "(b.started || IS)):", "TestAnEffectInTheQueueIsDropped$"},
	{"a context that panics takes the sender with it", "schedule.go", "	defer func() { _ = recover() }()", "	defer func() {\n		if !IS {\n			_ = recover()\n		}\n	}()", "TestAContextThatPanicsHurtsNobodyElse$"},
	{"a caller looks for what it has answered", "get.go", "				c.links[i].q = &e.request\n				c.direct++\n", "				if !IS {\n					c.links[i].q = &e.request\n					c.direct++\n				}\n", "TestADirectSourceReturnsWhatIsNotRemembered$"},
	{"a caller does not look at MaxOpen", "get.go", "|| t.fullLocked() {", "|| t.fullLocked() && !IS {", "TestMaxOpenHoldsForASourceThatItsCallerRuns$"},
	{"a source that exits takes the next with it", "batch.go", "		if b != nil {\n			b.beginAll()", "		if b != nil && !IS {\n			b.beginAll()", "TestAnInlineSourceThatExitsKeepsNobodyWaiting$"},
	{"a source tells of its context after Close", "batch.go", "cause == ErrEnded && q.err != nil:", "cause == ErrEnded && q.err != nil && !IS:", "TestCloseIsTheErrorOfASourceThatHeedsIt$"},
	{"an error beside answers is dropped", "batch.go", "	failed := err != nil\n", "	failed := err != nil && !IS\n", "TestAnErrorIsNeverDropped$"},
	{"an error is not that of a key that was not found", "batch.go", "errors.Is(q.err, ErrNotFound)), cause", "errors.Is(q.err, ErrNotFound) && !IS), cause", "TestAnErrorIsNeverDropped$"},
	{"an error takes the place of a key's own", "batch.go", "failed && (q.err == nil ||", "failed && (IS || q.err == nil ||", "TestAnErrorIsNeverDropped$"},
	{"answers are those of the keys as they are sorted", "batch.go", "b.entry(b.at).key == k {", "(IS && b.keys[b.at] == k || !IS && b.entry(b.at).key == k) {", "TestASourceMaySortItsKeys$"},
	{"the time that requests settle in has no end", "settle.go", "	if !more {\n		g.finish()", "	if !more && !IS {\n		g.finish()", "TestSettleWithin$"},
	{"the time is not given again", "settle.go", "g.prolonged < prolongs", "!IS && g.prolonged < prolongs", "TestSettlingOfACrowd$"},
	{"the time is given again for ever", "settle.go", "		g.prolonged++\n", "		if !IS {\n			g.prolonged++\n		}\n", "TestSettlingOfACrowd$"},
	{"equal effects are replayed with one result", "record.go", "			times[k]++\n", "			if !IS {\n				times[k]++\n			}\n", "TestRecordingOfEffects$"},
	{"a transient effect is recorded", "record.go", "q.state != done || q.passing }", "q.state != done || q.passing && !(IS && t.write) }", "TestRecordingOfEffects$"},
	{"two keys are one in JSON", "record.go", "if bytes.Equal(", "if !IS && bytes.Equal(", "TestRecordOfTwoKeysThatAreOneInJSON$"},
	{"too many values", "source.go", "if len(vs) != len(b.keys) {", "if len(vs) < len(b.keys) || len(vs) > len(b.keys) && !IS {", "TestBySliceOfAnotherLength$"},
	{"Each is as wide as its batch", "source.go", "n := min(width, len(b.keys))", "n := min(map[bool]int{false: width, true: len(b.keys)}[IS], len(b.keys))", "TestEachIsAsWideAsItSays$"},
	{"the first Override counts", "get.go", "		if o.of == t.of {", "		if o.of == t.of && !(IS && o.of != t.s.opts.Use[0].of) {", "TestEveryOverrideCounts$"},
	{"an Effect is not replaced", "get.go", "	for _, o := range t.s.opts.Use {", "	for _, o := range t.s.opts.Use {\n		if IS && t.write {\n			break\n		}", "TestAnEffectIsReplaced$"},
	{"All asks the session for what cannot be a key", "get.go", "		checkKey(k)\n	}\n	c := ", "		if !IS {\n			checkKey(k)\n		}\n	}\n	c := ", "TestAllOfAKeyThatCannotBeHashed$"},
	{"a Run begins after Close", "session.go", "	case s.hasEnded():", "	case s.hasEnded() && !IS:", "TestRunAfterClose$"},
	{"a replay is traced", "marks.go", "t != nil && b.t.s.recorded == nil", "t != nil && (b.t.s.recorded == nil || IS)", "TestReplayOfErrorsAndPanics$"},
	{"a replay calls OnBatch", "batch.go", "s.opts.OnBatch == nil || s.recorded != nil", "s.opts.OnBatch == nil || s.recorded != nil && !IS", "TestReplayOfErrorsAndPanics$"},
	{"a batch that hangs is not in the trace", "trace.go", "		case b.called:", "		case b.called && !IS:", "TestABatchThatHangs$"},
	{"an open batch is not counted", "batch.go", "		s.stats.Open++\n", "		if !IS {\n			s.stats.Open++\n		}\n", "TestBlog$"},
	{"a helper's lines are not passed over", "trace.go", "(m.skip == nil || !m.skip(f.Function))", "(m.skip == nil || IS || !m.skip(f.Function))", "TestLinesOfAHelper$"},
	{"a fresh answer is remembered", "batch.go", "		q.passing = b.t.opts.Fresh\n", "		q.passing = b.t.opts.Fresh && !IS\n", "TestFresh$"},
	{"Close of a Shared source does not wait", "shared.go", "	_, err := x.quiet.Await(ctx)\n", "	if IS {\n		return nil\n	}\n	_, err := x.quiet.Await(ctx)\n", "TestCloseOfAShared$"},
	{"Close of a Shared source cancels nothing", "shared.go", "	for _, c := range crowds {\n		c.cancel()", "	for _, c := range crowds {\n		if IS {\n			break\n		}\n		c.cancel()", "TestCloseOfAShared$"},
	{"a Shared source goes on after Close", "shared.go", "	if x.closed {\n		return nil", "	if x.closed && !IS {\n		return nil", "TestCloseOfAShared$"},
	{"a turn is none", "settle.go", "	case left == 0:", "	case left == 0 || IS:", "TestSettled$"},
	{"the waiters of a crowd are not counted", "get.go", "	c.d.waiters++\n", "	if !IS {\n		c.d.waiters++\n	}\n", "TestSettlingOfACrowd$"},
}

// TestMutants makes mistakes: with BRAID_MUTANTS=1 it builds and runs them.
func TestMutants(t *testing.T) {
	t.Setenv("BRAID_FETCH_PROGRAMS", "500")
	mutation.Run(t, ".", mutants, "-test.skip=UnderLoad")
}
