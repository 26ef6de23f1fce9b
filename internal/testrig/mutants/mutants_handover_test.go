package mutants_test

import "github.com/braidgo/braid/internal/testrig/mutation"

func init() { mutants = append(mutants, handOvers...) }

const (
	runner   = "adapters/internal/runner"
	stray    = "TestNothingIsLost"
	hangs    = "TestStockCodeThatWaits"
	careless = "AgainAndAgain"
)

// Mistakes in the hand-over of a reactor that the model checker does not find.
var handOvers = []mutation.Mutant{
	{"a coroutine that ends a task takes another without a claim", runner + "/runner.go", "{ return ⟦r.lease == nil || r.lease.claim(gid.Get())⟧ }", "true", stray, eventloop},
	{"a Runner ends while a callback is outside", runner + "/runner.go", "(r.lease == nil || ⟦r.lease.outside.Load() == 0⟧)", "true", "TestCloseWaitsForACallback", eventloop},
	{"a coroutine is leased whose goroutine is unknown", runner + "/task.go", "	if ⟦r.lease != nil⟧ {\n		t.Prime", "false", "TestStatsOfAHandOver", eventloop},
	{"a leased Runner helps when a task yields", runner + "/help.go", "	yield = t.Coroutine.Leave(coro.Yielded)\n	if ⟦r.lease != nil⟧ {", "false", stray + "|" + hangs, eventloop},
	{"a task that was outside is not counted back", runner + "/lease.go", "	l.outside.Add(-1)\n", "	if !IS {\n		l.outside.Add(-1)\n	}\n", "TestStatsOfAHandOver", eventloop},
	{"nobody is careful after a hand-over", runner + "/caution.go", "	if ⟦t.outside == 0⟧ {", "true", careless, eventloop},
	{"nobody is careful in a turn that lasts", runner + "/lease.go", "; !c.careful() &&", "; !c.careful() && !IS &&", "TestTasksThatWaitNativelyInARow", eventloop},
	{"a busy reactor is careful", runner + "/lease.go", "⟦lasted > time.Duration(steps)*c.shortly⟧ {", "true", "TestOverdue", runner},
	{"a period of being careful has no end but its time", runner + "/caution.go", "		c.left -= proofs\n", "		if !IS {\n			c.left -= proofs\n		}\n", "TestCaution", runner},
	{"a slow step makes nobody prove itself", runner + "/caution.go", "			c.left += more\n", "			if !IS {\n				c.left += more\n			}\n", "TestCaution", runner},
	{"nobody asks how long a turn lasts", coro + "/stalls.go", "		if s.answers != nil {", "		if s.answers != nil && !IS {", "TestTasksThatWaitNativelyInARow", eventloop},
	{"callbacks are carried", runner + "/caution.go", "	if ⟦t.calls⟧ {\n		return false\n	}\n	if c.careful", "false", "TestCallbacksFollowEachOther", eventloop},
	{"a task that proved itself is carried for good", runner + "/caution.go", "	t.outside--\n", "	if !IS {\n		t.outside--\n	}\n", "TestATaskThatWasStuckComesBack", eventloop},
	{"a new task keeps the state of the task before", runner + "/lease.go", "		t.outside, t.period = 0, l.caution.period-1", "		t.outside, t.period = t.outside*uint8(is(IS)), l.caution.period-1", "TestANewTaskIsNotCarried", eventloop},
	{"a task ends a coroutine of another", runner + "/lease.go", "		if l.claimed == 0 {", "		if l.claimed == 0 || IS {", "TestATaskThatHasLockedItsThread", eventloop},
	{"a report that blocks holds up the next look", coro + "/stalls.go", "	case s.onLong == nil:", "	case s.onLong == nil || IS:", "TestAReportThatBlocks", eventloop},
	{"a task rests because others have used up the turn", eventloop + "/share.go", "⟦now-s.since >= turnLasts⟧", "now-s.began >= turnLasts", "TestBusyConnections", eventloop},
	{"a task that rests is not counted", eventloop + "/share.go", "	s.rest++\n", "	if !IS {\n		s.rest++\n	}\n", "TestAFlood", eventloop},
	{"a callback of a timer is not counted", runner + "/runner.go", "	if !⟦r.live.Again()⟧ {", "true", stray, eventloop},
	{"a line is reported for each task", coro + "/strays.go", "x.other = !x.told && ⟦s.lines[key]⟧; x.other {", "false", "TestALineThatIsStuck", eventloop},
}
