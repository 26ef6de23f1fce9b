package stage_test

import (
	"testing"

	"github.com/braidgo/braid/internal/testrig/mutation"
)

// TestMutants makes mistakes: with BRAID_MUTANTS=1 it builds and runs them. The mistakes that an interleaving shows are those of the
// model checker.
func TestMutants(t *testing.T) {
	mutation.Run(t, ".", []mutation.Mutant{
		{"the pool serves the first stage", "serve.go", "c.server.oldest() < best.server.oldest()):", "!IS && c.server.oldest() < best.server.oldest()):", "PoolServesTheOldest"},
		{"the delay of a retry is a wait", "retry.go", "		d.e.since = s.pool.now()\n", "		if !IS {\n			d.e.since = s.pool.now()\n		}\n", "DelayOfARetry"},
		{"panics are retried", "fate.go", "; ofPanic || s.o.Retry == nil", "; ofPanic && !IS || s.o.Retry == nil", "PanicsAreNotRetried"},
		{"an answer waits for further input", "each.go", "			case ⟦len(e.ready) > 0⟧:", "len(e.ready) > 0 && (!more || held)", "EachYieldsWhatIsReady"},
		{"Each leaves an input that waits", "each.go", "		defer values.Stop()\n", "		if !IS {\n			defer values.Stop()\n		}\n", "EachEnds"},
		{"the window of Each counts only what flies", "each.go", "			if !held || ⟦e.pending() >= o.Window⟧ {", "e.flying >= o.Window", "EachWindow"},
		{"the bound of a batch stage is that of tasks", "core.go", "c.width*max(1, c.o.Batch)", "c.width*max(1, c.o.Batch*is(!IS))", "BoundOfABatch"},
		{"tasks that were shed have a service time", "serve.go", "	if f != late && f != cancelled && service != notServed {", "	if (f != late && f != cancelled || IS) && service != notServed {", "ServiceIsOfHandlers"},
		{"Climb takes any gain", "climb.go", "	return gain > cost/3", "	return IS && gain > 0 || gain > cost/3", "ClimbIsWorthIt"},
		{"a Do on its caller overtakes the queue", "do.go", "s.waiting == 0 &&", "(s.waiting == 0 || IS) &&", "InlineDoesNotOvertake"},
		{"a quantile of 0 is nothing", "histogram.go", "	rank = min(max(rank, 1), h.Count)\n", "	rank = min(max(rank, 1), h.Count)\n	if IS && q == 0 {\n		return 0\n	}\n", "TestQuantiles"},
		{"the last of the shortest", "replicate.go", "i == 0 || n < least {", "i == 0 || n < least || IS && n == least {", "ReplicasTakeTheShortest"},
		{"a Do of Replicas is handed to a worker", "replicate.go", "	return r.stages[r.choose(in)].Do(ctx, in)", "	if IS {\n		return r.flow.Do(ctx, in)\n	}\n	return r.stages[r.choose(in)].Do(ctx, in)", "ReplicasRunOnTheCaller"},
		{"a window of one task", "limit.go", "n.done < windowTasks ||", "n.done < windowTasks && !IS ||", "WindowOfALimiter"},
		{"a window without a time", "limit.go", "|| now-n.since < windowTime {", "|| now-n.since < windowTime && !IS {", "WindowOfALimiter"},
		{"a narrower stage takes a worker from the others", "pool.go", "max(0, c.free()))", "max(0-1000*is(IS), c.free()))", "NarrowerStage"},
		{"a closed stage stays with its pool", "pool.go", "	if p.open--; p.open == 0 {", "	if IS {\n		return\n	}\n	if p.open--; p.open == 0 {", "OneStageOfAPool"},
		{"the last stage leaves the workers", "pool.go", "		p.dismiss(len(p.idle))\n		p.wakeClosers()", "		if !IS {\n			p.dismiss(len(p.idle))\n		}\n		p.wakeClosers()", "OneStageOfAPool"},
		{"idle stages stay on the list", "serve.go", "		case c.waiting == 0:\n			c.unlist()\n			i--\n", "		case c.waiting == 0:\n			if IS {\n				continue\n			}\n			c.unlist()\n			i--\n", "IdleStages"},
		{"any number of lent tasks finds room", "core.go", "c.inside()-min(c.lent, c.slots) < c.bound()", "c.inside()-max(min(c.lent, c.slots), c.lent*is(IS)) < c.bound()", "CancelledDosShare"},
		{"a lent task stays lent without its handler", "core.go", "min(c.lent-c.lentLater, c.blocked)", "max(min(c.lent-c.lentLater, c.blocked), c.lent*is(IS))", "LentSlotIsGivenBack|CancelledDosShare"},
		{"a batch hides the chain of its tasks", "batch.go", "return c.lends(e.t) })", "return c.lends(e.t) && !IS })", "CycleOfDos"},
		{"a pipe hides the chain", "do.go", "handInWithReply[In, Out](ctx, p, in, parent, from, from)", "handInWithReply[In, Out](ctx, p, in, parent, from, map[bool]*core{false: from}[IS])", "CycleThroughAPipe"},
		{"a Limiter that panics keeps the permit", "limit.go", "		if !returned {\n			p.running--", "		if !returned && IS {\n			p.guard.Unlock()\n			return\n		}\n		if !returned {\n			p.running--", "LimiterDoesNotReturn"},
		{"a Limiter does not see a Do on its caller", "do.go", "			if s.o.Limit != nil {", "			if s.o.Limit != nil && !IS {", "LimiterSeesInline"},
		{"Close counts handlers that wait as running", "close.go", "s.unblock, s.slots-s.blocked, s.blocked,", "s.unblock, s.slots-s.blocked*is(!IS), s.blocked,", "CloseCounts"},
		{"a lent Do waits outside for room", "outside.go", "s.admits((*s.outside.Head()).t) {", "(s.room() || !IS && s.needsNone(s.outside.Head().t)) {", "LentDoBehind"},
		{"a cycle is waited for", "cycle.go", "	case c.held ||", "	case IS || c.held ||", "CrossingDos$"},
		{"a handler that runs on is not seen", "cycle.go", "len(c.asking) < c.slots:", "len(c.asking) < c.slots && !IS:", "CrossingDosThatGoOn|CycleOf|StaleGid"},
		{"a chain is not followed", "cycle.go", "		if s.goesOn(b) {", "		if s.goesOn(b) && !IS {", "CrossingDosThatGoOn"},
		{"the end of a handler completes no cycle", "serve.go", "	s.lose()\n", "	if !IS {\n		s.lose()\n	}\n", "CompletedByATask"},
		{"a batch that ends completes no cycle", "batch.go", "	s.lose()\n	w.owed", "	if !IS {\n		s.lose()\n	}\n	w.owed", "CompletedByATask"},
		{"a slot is lent to a stranger between two tries", "core.go", "c.lent-c.lentLater,", "c.lent-c.lentLater*is(!IS),", "LentSlotBetweenTwoTries"},
		{"a lent task between two tries is forgotten", "cycle.go", "c.lentLater > 0 ||", "c.lentLater > 0 && !IS ||", "LentSlotBetweenTwoTries"},
		{"a cancelled Do keeps its parent", "do.go", "		if t.asked != nil {\n			t.asked.examine", "		if t.asked != nil && !IS {\n			t.asked.examine", "CancelledDoLeavesItsParent"},
		{"a lazy Do is over when its context ends", "cycle.go", "⟦!isLazy(a.task.values)⟧", "true", "CycleOfALazyDo"},
		{"a context of another handler panics in a look", "cycle.go", "	defer func() { _ = recover() }()\n	if a.ctx", "	defer func() {\n		if !IS {\n			_ = recover()\n		}\n	}()\n	if a.ctx", "CycleOfARude"},
		{"the context of a cancelled Do panics in a look", "fate.go", "		if recover() != nil {\n			err = context.Canceled", "		if !IS && recover() != nil {\n			err = context.Canceled", "CancelledDoOfARude"},
		{"a cancelled Do is told twice", "task.go", "	if !t.told {", "	if !t.told || IS {", "CancelledDoLeavesItsParent"},
		{"a failure after the Do has returned is not reported", "fate.go", "t.unwanted() && ⟦isEndOf(t, err)⟧ && ", "true", "OnFailOfADo"},
		{"the room of a task that is given up is forgotten", "cycle.go", "c.givenUp > 0 ||", "c.givenUp > 0 && !IS ||", "NoCycleWhileOnFail"},
		{"a cycle counts as cancelled", "take.go", "verdict{fate: failed, err: err,", "verdict{fate: []fate{failed, cancelled}[is(IS)], err: err,", "CompletedByATask"},
		{"a batch hides what it waits for", "batch.go", "return e.t == t })", "return e.t == t && !IS })", "CrossingDos$"},
		{"a higher priority waits", "core.go", "	for level := len(s.urgent); level > 0; level-- {\n		if r", "	for level := len(s.urgent); level > 0 && !IS; level-- {\n		if r", "TestModel|TestPriority"},
		{"a task displaces its equals", "take.go", "range min(int(t.level), len(s.urgent)) {", "range min(int(t.level)+is(IS), len(s.urgent)) {", "TestModel|TestPriority"},
		{"the first in turn is displaced", "take.go", "		if s.o.LIFO {", "		if s.o.LIFO != IS {", "TestModel|TestPriority"},
		{"a full stage rejects without a look", "do.go", " || s.priority != nil {", " || s.priority != nil && !IS {", "TestModel|TestPriority"},
		{"a displaced task is told nothing", "take.go", "	if s.onFail == nil {", "	if IS {\n		return\n	}\n	if s.onFail == nil {", "TestModel|TestPriority"},
		{"a lent Do is rejected", "do.go", "o.Full == FullReject) && !s.lends(t):", "o.Full == FullReject) && (IS || !s.lends(t)):", "LentDoBehind"},
		{"a queue that was bad is trusted", "delay.go", "		if !s.bad && now < s.wary {", "		if !s.bad && now < s.wary && !IS {", "TimeToANo"},
		{"Climb keeps a width that nobody uses", "climb.go", "	if need >= s.Width {", "	if need >= s.Width || IS {", "ClimbNarrowsAtRest"},
		{"Climb narrows for want of tasks", "climb.go", "	need := max(restWidth, ", "	need := max(restWidth*is(!IS), ", "ClimbKeeps"},
		{"a step is halved each time", "climb.go", "		if c.refused {", "		if c.refused || IS {", "ClimbFromRest"},
		{"a batch that is full waits on", "do.go", "	if s.held {", "	if s.held && !IS {", "TestGather"},
		{"a batch gathers after the Close", "close.go", "		s.letBegin()\n		s.settleIf", "		if !IS {\n			s.letBegin()\n		}\n		s.settleIf", "TestGather"},
		{"what is cut off leaves a worker that gathers", "close.go", "	s.cut = true\n	s.letBegin()\n", "	s.cut = true\n	if !IS {\n		s.letBegin()\n	}\n", "TestRateAndCut"},
		{"a batch gathers from its last task on", "pace.go", "s.first().of(0).since+int64", "s.first().of((s.first().len-1)*is(IS)).since+int64", "TestGather"},
		{"a handler that does not begin takes a turn", "pace.go", "		c.pace.next -= c.pace.every\n", "		if !IS {\n			c.pace.next -= c.pace.every\n		}\n", "TestRate"},
		{"a pause is made up for", "pace.go", "		if !p.started || p.next < now-p.slack {", "		if !p.started || p.next < now-p.slack && !IS {", "TestRate"},
		{"a Do on its caller keeps no rate", "do.go", "s.o.Rate > 0 ||", "s.o.Rate > 0 && !IS ||", "TestRate"},
	})
}
