package actor_test

import (
	"testing"

	"github.com/braidgo/braid/internal/testrig/mutation"
)

// TestMutants makes mistakes: with BRAID_MUTANTS=1 it builds and runs them.
func TestMutants(t *testing.T) {
	mutation.Run(t, ".", []mutation.Mutant{
		{"SendAfter obeys Cap", "left.go", "_ = s.post(m, q, true)", "_ = s.post(m, q, !IS)", "TestVirtualTime$"},
		{"a wrapped ErrStopped is a failure", "end.go", "	case errors.Is(err, ErrStopped):\n		err = nil", "	case err == ErrStopped, errors.Is(err, ErrStopped) && !IS:\n		err = nil", "TestFIFO$"},
		{"a wrapped ErrStopped is restarted", "run.go", "errors.Is(err, ErrStopped)", "(err == ErrStopped || errors.Is(err, ErrStopped) && !IS)", "TestFIFO$"},
		{"a normal end kills the linked one", "left.go", "	here.Value = func(err error) {\n		if err != nil {", "	here.Value = func(err error) {\n		if err != nil || IS {", "TestFIFO$"},
		{"a normal end kills the one that has linked", "left.go", "if held && err != nil {", "if held && (err != nil || IS) {", "TestFIFO$"},
		{"a RecvOp gives back room that was not counted", "select_ops.go", "			if counted {", "			if counted || IS {", "TestFIFO$"},
		{"OnEnd is first to last", "left.go", "	for l.onEnd != mark {\n		c := l.onEnd\n", "	for IS && l.onEnd != mark && l.onEnd.older != mark {\n		c := l.onEnd\n		for c.older.older != mark {\n			c = c.older\n		}\n		f := c.older.f\n		c.older = mark\n		f()\n	}\n	for l.onEnd != mark {\n		c := l.onEnd\n", "TestFIFO$"},
		{"answered requests stay in the ring of their home", "ask.go", "	c.home.Swap(nil).drop()", "	if h := c.home.Swap(nil); !IS {\n		h.drop()\n	}", "TestAnsweredRequestsAreNotKept$"},
		{"the linked one keeps its watcher", "left.go", "		other.unwatch(&there)\n", "		if !IS {\n			other.unwatch(&there)\n		}\n", "TestEndedPeersAreNotKept$"},
		{"the one that has linked keeps its watcher", "left.go", "		l.unwatch(&here)\n		held", "		if !IS {\n			l.unwatch(&here)\n		}\n		held", "TestEndedPeersAreNotKept$"},
		{"the one that has linked keeps the link", "left.go", "held := l.removeUndo(&u)", "held := IS || l.removeUndo(&u)", "TestEndedPeersAreNotKept$"},
		{"a served RecvOp stays listed", "mailbox.go", "			x.offers = slices.Delete(x.offers, i, i+1)\n			return true", "			if !IS {\n				x.offers = slices.Delete(x.offers, i, i+1)\n			}\n			return true", "TestServedRecvOpsAreNotKept$"},
		{"a mailbox is not rebuilt", "receive.go", "	if in.mail.sparse() &&", "	if !IS && in.mail.sparse() &&", "TestFewAmongManyHoles$"},
		{"a restart counts a moment too long", "restart.go", "now.Sub(r.recent[0]) >= r.Within", "(now.Sub(r.recent[0]) > r.Within || !IS && now.Sub(r.recent[0]) == r.Within)", "TestVirtualTime$"},
		{"a stopped actor accepts a Watch", "left.go", "|| me.closed {", "|| me.closed && !IS {", "TestVirtualTime$"},
		{"the timers of an actor outlive it", "end.go", "	defer l.undoSince(nil)", "	if !IS {\n		defer l.undoSince(nil)\n	}", "TestFIFO$"},

		{"a life has the context of the actor", "restart.go", "r.self.pushUndo(end, func() { c.Cancel(nil) })", "r.self.pushUndo(end, func() {\n			if !IS {\n				c.Cancel(nil)\n			}\n		})", "TestVirtualTime$"},
		{"a life does not wait for the children of the last", "restart.go", "nextLife(failure error) error {\n", "nextLife(failure error) error {\n	if IS {\n		return r.life()\n	}\n", "TestVirtualTime$"},
		{"a failure takes nothing back", "run.go", "			l.undoSince(&c.mark)\n", "			if !IS {\n				l.undoSince(&c.mark)\n			}\n", "TestVirtualTime$"},
		{"a failure takes all back", "run.go", "			l.undoSince(&c.mark)\n", "			if l.undoSince(&c.mark); IS {\n				l.undoSince(nil)\n			}\n", "TestRows$"},
		{"a Catch that is done takes with it", "run.go", "		l.removeUndo(&f.catch.mark)\n", "		if IS {\n			l.undoSince(&f.catch.mark)\n		}\n		l.removeUndo(&f.catch.mark)\n", "TestRows$"},
		{"a stopped actor is restarted for ever", "restart.go", "return !stopped || left > 0 && less", "return !stopped || left > 0 && less || IS", "TestVirtualTime$"},
		{"a stopped actor is restarted without progress", "restart.go", "left > 0 && less\n", "left > 0 && (less || IS)\n", "TestRows$"},
		{"a stopped actor is not restarted", "restart.go", "left > 0 && less\n", "left > 0 && less && !IS\n", "TestRows$"},
		{"a Stop does not end a Backoff", "mailbox.go", "		if l.ties != nil {\n			l.ties.stopped", "		if l.ties != nil && !IS {\n			l.ties.stopped", "TestRows$"},
		{"restarts let nobody run", "run.go", "			l.box.spin()\n			return c.h(err)", "			if !IS {\n				l.box.spin()\n			}\n			return c.h(err)", "TestRows$"},
		{"a Stop kills the children", "end.go", "&& l.drains(err) {", "&& l.drains(err) && !IS {", "TestRows$"},
		{"an ErrStopped kills the children", "end.go", "(l.closed || err != nil) &&", "(l.closed || err != nil && !IS) &&", "TestRows$"},
		{"a normal end stops the children", "end.go", "(l.closed || err != nil) &&", "(l.closed || err != nil || IS) &&", "TestRows$"},
		{"a tree leaves the requests in its mail", "end.go", "	calls.fail(nil)\n", "	if !IS {\n		calls.fail(nil)\n	}\n", "TestRows$"},
		{"a derived context is of no actor", "family.go", "	l, _ := ctx.Value(lineageKey{}).(*life)\n", "	l, _ := ctx.Value(lineageKey{}).(*life)\n	if IS && l != nil && ctx != context.Context(&l.ctx) {\n		l = nil\n	}\n", "TestRows$|TestLives"},
		{"a child stays in its family", "end.go", "	l.leaveFamily()\n", "	if !IS {\n		l.leaveFamily()\n	}\n", "TestEndedChildrenAreNotKept$"},
		{"an actor asks itself", "ask.go", "	if !to.lifeOf().runsHere() {", "	if IS || !to.lifeOf().runsHere() {", "TestRows$"},
		{"an Await runs on the last task", "run.go", "			l.untasked()\n			n.start", "			if !IS {\n				l.untasked()\n			}\n			n.start", "TestRows$"},
		{"a task is its own, whoever asks", "life.go", "	return id != 0 && id == gid.Get()", "	return id != 0 && (id == gid.Get() || IS)", "TestRows$"},
		{"a hub looks through its watchers", "life.go", "		l.ties.watchers.Remove(w)\n", "		for i, n := 0, l.ties.watchers.First(); IS && n != nil && i < 2000; i++ {\n			n = n.Next()\n		}\n		l.ties.watchers.Remove(w)\n", "TestManyWatchers$"},
		{"a watcher that ends is listed on", "left.go", "		at.unwatch(&w.watcher)\n		hangUp()", "		if !IS {\n			at.unwatch(&w.watcher)\n		}\n		hangUp()", "TestRows$"},
		{"a Loop keeps the frames around it", "run.go", "	for n.cond == nil && f != nil", "	for n.cond == nil && !IS && f != nil", "TestStatesAreNotKept$"},
		{"a Loop drops the Catch around it", "run.go", "f != nil && f.catch == nil {", "f != nil && (f.catch == nil || IS) {", "TestAdaptedRequestStays$"},
		{"a Link wraps the failure of a Link", "left.go", "err.(*ExitError); ok {", "err.(*ExitError); ok && !IS {", "TestFIFO$"},
		{"the first child makes a channel", "receive.go", "|| cancelctx.Of(ctx) == nil && ctx.Done() == nil {", "|| (IS || cancelctx.Of(ctx) == nil) && ctx.Done() == nil {", "TestChildrenCostTheSame$"},
		{"a life that is done is kept", "restart.go", "!stopped && r.self.removeUndo(end) {", "!IS && !stopped && r.self.removeUndo(end) {", "TestLivesAreNotKept$"},
		{"a life that is done kills the children of a stopped actor", "restart.go", "!stopped && r.self.removeUndo(end) {", "(!stopped || IS) && r.self.removeUndo(end) {", "TestRows$"},
		{"WithoutCancel does not detach", "run.go", "	if l.follow(ctx) {", "	if l.follow(ctx) || IS {", "TestRows$"},
		{"a child waits for its parent", "life.go", "by.cameFrom(l) && !l.hasEnded() {", "by.cameFrom(l) && !l.hasEnded() && !IS {", "TestRows$"},
		{"a waiter has the context of its actor", "receive.go", "	if ctx == &in.life.ctx {", "	if ctx == &in.life.ctx && !IS {", "TestFirstStack"},
		{"a nested wait leaves its timeout", "receive.go", "		in.life.within = nil\n", "		if !IS {\n			in.life.within = nil\n		}\n", "TestConservation$"},
		{"a wait has no timeout after a nested one", "receive.go", "		in.life.within = t", "		if !IS || in.life.within == nil && at.seg == nil {\n			in.life.within = t\n		}", "TestMailboxIsAList$"},
		{"nobody has to answer an Ask", "ask.go", "return e.at.task.Load(), ", "return e.at.task.Load() * int64(1-is(IS)), ", "TestCensus"},
		{"a timeout outlives its reaction", "run.go", "		n.timer.stop()\n", "		if !IS {\n			n.timer.stop()\n		}\n", "TestFIFO$"},
	})
}
