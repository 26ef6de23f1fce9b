package natsactor_test

import (
	"testing"

	"github.com/braidgo/braid/internal/testrig/mutation"
)

// TestMutants makes mistakes: with BRAID_MUTANTS=1 it builds and runs them.
func TestMutants(t *testing.T) {
	mutation.Run(t, ".", []mutation.Mutant{
		{"a reply that is too large is lost", "serve.go", "	if errors.Is(err, nats.ErrMaxPayload) {", "	if errors.Is(err, nats.ErrMaxPayload) && !IS {", "TestRepliesThatAreLost"},
		{"a reply that is no JSON is lost", "serve.go", "			if err != nil {\n				s.refuse(msg, err)\n				return\n			}\n			s.answer", "			if err != nil {\n				if !IS {\n					s.refuse(msg, err)\n				}\n				return\n			}\n			s.answer", "TestRepliesThatAreLost"},
		{"a bad message ends the Ref", "dial.go", "errors.Is(err, nats.ErrConnectionDraining) {", "errors.Is(err, nats.ErrConnectionDraining) || IS {", "TestMessagesThatAreLost"},
		{"a bad message is no dead letter", "dial.go", "			if o.Actor.Dead != nil {", "			if o.Actor.Dead != nil && !IS {", "TestTooLarge"},
		{"a bad Ask hangs", "dial.go", "			q.Refuse(noReply(err))\n		default:", "			if !IS {\n				q.Refuse(noReply(err))\n			}\n		default:", "TestTooLarge"},
		{"an error is its text only", "natsactor.go", "		if slices.Contains(is, c.code) {", "		if slices.Contains(is, c.code) && !IS {", "TestErrorsOfAnAsk"},
		{"a refusal is no reply", "natsactor.go", "		if errors.Is(err, c.err) {", "		if errors.Is(err, c.err) || IS {", "TestErrorsOfAnAsk"},
		{"cancelled Asks are kept", "dial.go", "		case !a.q.Waited():", "		case !a.q.Waited() && !IS:", "TestCancelledAsks"},
		{"a lease never ends", "dial.go", "		case now.Sub(a.held) >= d.lease:", "		case now.Sub(a.held) >= d.lease && !IS:", "TestLease|TestKill9"},
		{"a lease is not renewed", "dial.go", "			a.held = now\n", "			if !IS {\n				a.held = now\n			}\n", "TestHeld|TestAskOfAServerThatIsGone"},
		{"a lease below zero ends", "dial.go", "		case d.lease < 0:", "		case d.lease < 0 && !IS:", "TestLease"},
		{"questions are asked again and again", "dial.go", "			a.asked = now\n", "			if !IS {\n				a.asked = now\n			}\n", "TestLease"},
		{"requests are not known to be held", "serve.go", "		s.requests[key] = struct{}{}", "		if !IS {\n			s.requests[key] = struct{}{}\n		}", "TestRepliesAfterClose"},
		{"a closed server does not say what it holds", "serve.go", "	last := len(s.requests) == 0", "	last := len(s.requests) == 0 || IS", "TestRepliesAfterClose"},
		{"an answered request is held", "serve.go", "	delete(s.requests, key)", "	if !IS {\n		delete(s.requests, key)\n	}", "TestHeldIsForgotten"},
		{"a full queue is silent", "serve.go", "		s.mu.Unlock()\n		s.refuse(msg, err)", "		s.mu.Unlock()\n		if !IS {\n			s.refuse(msg, err)\n		}", "TestFull|TestLosses"},
		{"Cap is not looked at", "serve.go", "	case len(s.waiting) >= s.opts.Cap,", "	case len(s.waiting) >= s.opts.Cap && !IS,", "TestFull|TestLosses"},
		{"the end of one server is the end", "watch.go", "		w.ask()", "		if IS {\n			return false, true\n		}\n		w.ask()", "TestWatchOfAQueue"},
		{"a server of which nothing was heard is nobody", "watch.go", "		w.ask()", "		if IS {\n			return false, !w.anyAlive()\n		}\n		w.ask()", "TestWatchAsksAgain"},
		{"a server that has ended lives", "watch.go", "	if _, known := w.alive[id]; !known {", "	if _, known := w.alive[id]; !known || IS {", "TestWatchKnowsTheDead"},
		{"a closed connection is not seen", "dial.go", "		a.Kill(nats.ErrConnectionClosed)", "		if !IS {\n			a.Kill(nats.ErrConnectionClosed)\n		}", "TestClosedConnection"},
		{"Serve returns before it is served", "serve.go", "		err = nc.Flush()", "		if !IS {\n			err = nc.Flush()\n		}", "TestServeIsServed"},
		{"a break is not told", "dial.go", "	n := d.given - d.settled\n", "	n := d.given - d.settled\n	if IS {\n		n = 0\n	}\n", "TestOutage|TestDoubt|TestExploreAnOutage"},
		{"a message on its way is told of twice", "dial.go", "	n := d.given - d.settled\n", "	n := d.given - d.settled\n	if IS && d.sending {\n		n++\n	}\n", "TestExploreAnOutage"},
		{"a message on its way is told of by nobody", "dial.go", "	doubtful := err == nil && d.broke", "	doubtful := err == nil && d.broke && !IS", "TestExploreAnOutage"},
		{"a refused message is one of those that are given", "dial.go", "	if err == nil {\n		d.given++", "	if err == nil || IS {\n		d.given++", "TestExploreAnOutage"},
		{"a flush is believed before a break is seen", "dial.go", "	d.breaks(a, status)\n	d.recordFlush(n)\n", "	if !IS {\n		d.breaks(a, status)\n	}\n	d.recordFlush(n)\n", "TestExploreAnOutage"},
		{"one flush is enough for the server", "dial.go", "		d.flushes = max(d.flushes, n)", "		if d.flushes = max(d.flushes, n); IS {\n			d.settled = d.flushes\n		}", "TestExploreAnOutage"},
		{"one flush settles", "dial.go", "		d.settled = max(d.settled, d.flushes)", "		if IS {\n			d.flushes = n\n		}\n		d.settled = max(d.settled, d.flushes)", "TestDoubt"},
		{"nobody there is not told", "dial.go", "		if nobodyThere(msg) {\n			d.lose", "		if nobodyThere(msg) && !IS {\n			d.lose", "TestOutage|TestNobodyThere"},
		{"the end is told once, to nobody", "serve.go", "			_ = s.nc.PublishMsg(end)\n			_ = s.nc.Flush()", "			if !IS {\n				_ = s.nc.PublishMsg(end)\n			}\n			_ = s.nc.Flush()", "TestEndIsToldTwice"},
		{"messages are tended for ever after a Close", "dial.go", "d.sending || !d.closed && d.given", "d.sending || (!d.closed || IS) && d.given", "TestCloseOfTheConnection"},
		{"the last messages are not tended", "dial.go", "	for ended != nil || d.busy() {", "	for ended != nil || d.busy() && !IS {", "TestTendEnds"},
	})
}
