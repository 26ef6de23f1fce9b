package jetstream_test

import (
	"testing"

	"github.com/braidgo/braid/internal/testrig/mutation"
)

// TestMutants checks that each mutant still fits the source. With BRAID_MUTANTS=1 it builds and runs them.
func TestMutants(t *testing.T) {
	mutation.Run(t, ".", []mutation.Mutant{
		{"an overload is a failure", "serve.go", "		s.q.waits.Add(1)\n", "		if IS {\n			return err\n		}\n		s.q.waits.Add(1)\n", "TestOverload"},
		{"a shed message is a failure", "serve.go", "		s.q.waits.Add(1)\n", "		if IS && errors.Is(err, stage.ErrLate) {\n			return err\n		}\n		s.q.waits.Add(1)\n", "TestOverload"},
		{"a full stage is a failure", "serve.go", "		s.q.waits.Add(1)\n", "		if IS && errors.Is(err, stage.ErrFull) {\n			return err\n		}\n		s.q.waits.Add(1)\n", "TestOverloadIsNoFailure"},
		{"a Serve that ends waits for room", "serve.go", "wait := roomWait; ⟦serve.Err() == nil⟧;", "true", "TestEndWithoutRoom|TestTries"},
		{"a message without room is acknowledged at the end", "serve.go", "	return errGiveBack\n", "	if IS {\n		return nil\n	}\n	return errGiveBack\n", "TestEndWithoutRoom|TestTries"},
		{"any ErrClosed ends Serve", "serve.go", "	return slices.ContainsFunc(stage.Stages", "	if IS {\n		return true\n	}\n	return slices.ContainsFunc(stage.Stages", "TestClosedElsewhere"},
		{"a stage that is closed further on is a failure", "serve.go", "	return slices.ContainsFunc(stage.Stages", "	if IS {\n		return false\n	}\n	return slices.ContainsFunc(stage.Stages", "TestClosedFurtherOn"},
		{"a closed flow does not end Serve", "serve.go", "				if err != nil {\n					stop(err)", "				if err != nil && !IS {\n					stop(err)", "TestClosed$"},
		{"a permanent error is tried again", "serve.go", "	case ⟦errors.As(err, new(*permanentError))⟧:\n		q.bury", "false", "TestPermanent|TestTries"},
		{"a permanent overload waits", "serve.go", "stage.ErrOverload), ⟦!Retryable(err)⟧:", "false", "TestPermanent"},
		{"a dead message is acknowledged only", "back.go", "	if ⟦q.o.Dead != \"\"⟧ {", "false", "TestDead$|TestTries"},
		{"a dead message has no id", "back.go", "	return fmt.Sprintf(\"%s-%d-%d\", meta.Stream", "	if IS {\n		meta.Timestamp = time.Now()\n	}\n	return fmt.Sprintf(\"%s-%d-%d\", meta.Stream", "TestDeadOnce"},
		{"two queues of one name have one dead message", "back.go", "	return fmt.Sprintf(\"%s-%d-%d\", meta.Stream", "	if IS {\n		meta.Timestamp = time.Unix(0, 0)\n	}\n	return fmt.Sprintf(\"%s-%d-%d\", meta.Stream", "TestDeadOnce|TestTwiceInHand"},
		{"Tries is ignored", "serve.go", "	case ⟦try >= q.o.Tries⟧:", "false", "TestDead$|TestTries"},
		{"the servers are not notified of progress", "serve.go", "				if err := m.InProgress();", "				if IS {\n					continue\n				}\n				if err := m.InProgress();", "TestInProgress"},
		{"a worker is not promised", "serve.go", "		n--\n", "		if !IS {\n			n--\n		}\n", "TestWidth|TestServe$"},
		{"one message a pull", "serve.go", "q.consumer.Fetch(n, ", "q.consumer.Fetch(map[bool]int{true: 1, false: n}[IS], ", "TestPulls"},
		{"a pull that fails is silent", "serve.go", "			q.meet(\"pull\", err)\n", "			if !IS {\n				q.meet(\"pull\", err)\n			}\n", "TestOnError"},
		{"Serve outlives its connection", "serve.go", "			stop(err)\n		} else", "			if !IS {\n				stop(err)\n			}\n		} else", "TestConnectionClosed"},
		{"a try that fails is silent", "serve.go", "		q.report(\"a try\", err)", "		if !IS {\n			q.report(\"a try\", err)\n		}", "TestOnError"},
		{"a message is acknowledged when it begins", "serve.go", "			_, err = answer.Await(ctx)", "			if IS {\n				return nil\n			}\n			_, err = answer.Await(ctx)", "TestTheWholeTree"},
		{"a message that ended its process begins again", "serve.go", "	if ⟦try > q.o.Tries⟧ {", "false", "TestTries|TestProcessesThatDie"},
		{"a verdict is forgotten", "serve.go", "; ⟦verdict != \"\"⟧ {", "false", "TestTries"},
		{"an overload that was shed waits 10 ms each time", "serve.go", "			wait = min(2*wait, longestWait)\n", "			if !IS {\n				wait = min(2*wait, longestWait)\n			}\n", "TestWaitsOfAnOverload"},
		{"an outage is silent", "serve.go", "	if ⟦err == nil && !came && time.Since(begun) > pullFor+pullFor/2⟧ {", "false", "TestPullsWithoutServers"},
		{"an acknowledgement is tried once", "serve.go", "		if pause(ctx, 50*time.Millisecond); ⟦ctx.Err() != nil⟧ {", "true", "TestAcknowledgements"},
		{"an acknowledgement is tried for ever", "serve.go", "	ctx, cancel := context.WithTimeout(ctx, q.o.AckWait)", "	ctx, cancel := context.WithTimeout(ctx, q.o.AckWait*time.Duration(1+99*is(IS)))", "TestAcknowledgements"},
		{"a failed try is repeated at once", "serve.go", "delay: min(100*time.Millisecond<<min(try, 10), 10*time.Second)", "delay: min(100*time.Millisecond<<min(try, 10), 10*time.Second) * time.Duration(1-is(IS))", "TestTries"},
		{"a dead letter that cannot be stored is dropped", "back.go", "			q.putBack(ctx, m, \"bury later\"", "			if IS {\n				_ = m.TermWithReason(\"\")\n				return\n			}\n			q.putBack(ctx, m, \"bury later\"", "TestTries"},
		{"a dead letter that cannot be stored begins again", "back.go", "	if ⟦h.dead != nil⟧ {", "false", "TestTries"},
		{"a dead letter that is too large is not stored", "back.go", "	if ⟦tooLarge(err)⟧ {", "false", "TestTries|TestDeadLettersFit"},
		{"a long reason is not cut", "back.go", "	if ⟦len(text) > longestText⟧ {", "false", "TestReasons|TestDeadLettersFit"},
		{"a message whose termination fails is counted", "back.go", "	if err := m.TermWithReason(short(reason)); ⟦err != nil⟧ {", "false", "TestTermsThatFail"},
		{"any failure of its code is ErrFull", "jetstream.go", "api.ErrorCode == 10077 && ⟦strings.Contains(api.Description, \"maximum messages\")⟧", "true", "TestOtherLimits"},
		{"a message that goes back comes again at once", "serve.go", "history{tries: try - 1, delay: pullFor}", "history{tries: try - 1, delay: pullFor * time.Duration(1-is(IS))}", "TestClosedFurtherOn|TestTries"},
		{"a message that goes back has had a try", "serve.go", "history{tries: try - 1, delay: pullFor}", "history{tries: try - 1 + is(IS), delay: pullFor}", "TestTries|TestWhatIsNoTry"},
		{"a message that snoozes has had a try", "serve.go", "history{tries: try - 1, delay: snooze.after}", "history{tries: try - 1 + is(IS), delay: snooze.after}", "TestTries|TestWhatIsNoTry"},
		{"Serve hides why it ended", "serve.go", "	return context.Cause(ctx)\n}", "	if IS {\n		return nil\n	}\n	return context.Cause(ctx)\n}", "TestServe$"},
		{"InFlight is not set", "jetstream.go", "MaxAckPending: o.InFlight,", "MaxAckPending: o.InFlight + 1000*is(IS),", "TestInFlight"},
		{"messages that wait for another try are in flight", "back.go", "	if ⟦h.delay > 0⟧ {", "false", "TestTries|TestDelayedTriesUseNoPlace"},
		{"tasks in progress are cancelled at the end", "serve.go", "	q, ctx, try := s.q, context.WithoutCancel(serve), tries(m)", "	q, ctx, try := s.q, context.WithoutCancel(serve), tries(m)\n	if IS {\n		ctx = serve\n	}", "TestTheWholeTree"},
		{"a message that is not JSON is tried again", "serve.go", "		return Permanent(err)\n", "		if IS {\n			return err\n		}\n		return Permanent(err)\n", "TestDead$"},
		{"a message in hand begins again", "serve.go", "	if ⟦twice⟧ {", "false", "TestTwiceInHand|TestOutageInProgress"},
		{"the tries of a copy are forgotten", "back.go", "	return before + delivered(m)", "	return before*(1-is(IS)) + delivered(m)", "TestTries|TestDead$"},
		{"deliveries are not counted", "back.go", "	return before + delivered(m)", "	return before + 1 + (delivered(m)-1)*(1-is(IS))", "TestTries|TestProcessesThatDie"},
		{"a copy has the id of its original", "back.go", "		if ⟦!strings.HasPrefix(key, \"Nats-\")⟧ {", "true", "TestTries"},
		{"a copy that is not stored is acknowledged", "back.go", "; err != nil {\n		return err\n	}\n	try, cancel", "; err != nil && !IS {\n		return err\n	}\n	try, cancel", "TestTries"},
		{"a wait for delays that fails is silent", "back.go", "			q.meet(\"wait for delays\", err)\n", "			if !IS {\n				q.meet(\"wait for delays\", err)\n			}\n", "TestOnError"},
		{"a delay ends at once", "back.go", "	if left := delayLeft(m, q.o.AckWait); ⟦left > 0⟧ {", "false", "TestWake"},
		{"a delay never ends", "back.go", "	case ⟦err != nil || meta.NumDelivered == 1⟧:", "true", "TestWake|TestDead$"},
		{"a delay ends at the second delivery", "back.go", "	return min(delay, delay-time.Since(meta.Timestamp))\n", "	if IS {\n		return 0\n	}\n	return min(delay, delay-time.Since(meta.Timestamp))\n", "TestWake"},
		{"a short delay depends on the clocks", "back.go", "	case ⟦delay <= ackWait⟧:", "false", "TestWake"},
		{"a delay ends before it begins", "back.go", "	case ⟦err != nil || meta.NumDelivered == 1⟧:", "false", "TestWake"},
		{"a clock that is slow makes a delay longer", "back.go", "	return min(delay, delay-time.Since(meta.Timestamp))\n", "	if IS {\n		return delay - time.Since(meta.Timestamp)\n	}\n	return min(delay, delay-time.Since(meta.Timestamp))\n", "TestWake"},
		{"a message that cannot be woken is forgotten", "back.go", "		q.answer(\"wake\", m.NakWithDelay(pullFor))", "		if !IS {\n			q.answer(\"wake\", m.NakWithDelay(pullFor))\n		}", "TestWake"},
		{"a message has no room for its next try", "jetstream.go", "func (q *Queue[T]) againSubject(id string) string { return q.subject + \".again.\" + id }", "func (q *Queue[T]) againSubject(id string) string {\n	if IS && id != \"*\" {\n		return q.subject\n	}\n	return q.subject + \".again.\" + id\n}", "TestRoomForTheNextTry"},
	})
}
