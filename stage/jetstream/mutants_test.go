package jetstream_test

import (
	"testing"

	"github.com/braidgo/braid/internal/testrig/mutation"
)

// TestMutants makes mistakes: with BRAID_MUTANTS=1 it builds and runs them.
func TestMutants(t *testing.T) {
	mutation.Run(t, ".", []mutation.Mutant{
		{"an overload is a failure", "serve.go", "		s.q.waits.Add(1)\n", "		if IS {\n			return err\n		}\n		s.q.waits.Add(1)\n", "TestOverload"},
		{"a shed message is a failure", "serve.go", "		s.q.waits.Add(1)\n", "		if IS && errors.Is(err, stage.ErrLate) {\n			return err\n		}\n		s.q.waits.Add(1)\n", "TestOverload"},
		{"a full stage is a failure", "serve.go", "		s.q.waits.Add(1)\n", "		if IS && errors.Is(err, stage.ErrFull) {\n			return err\n		}\n		s.q.waits.Add(1)\n", "TestOverloadIsNoFailure"},
		{"a Serve that ends waits for room", "serve.go", "		if pause(serve, wait); serve.Err() != nil {", "		if pause(serve, wait); serve.Err() != nil && !IS {", "TestEndWithoutRoom"},
		{"a message without room is acknowledged at the end", "serve.go", "			return errGiveBack\n", "			if IS {\n				return nil\n			}\n			return errGiveBack\n", "TestEndWithoutRoom"},
		{"any ErrClosed ends Serve", "serve.go", "	return slices.ContainsFunc(stage.Stages", "	if IS {\n		return true\n	}\n	return slices.ContainsFunc(stage.Stages", "TestClosedElsewhere"},
		{"a stage that is closed further on is a failure", "serve.go", "	return slices.ContainsFunc(stage.Stages", "	if IS {\n		return false\n	}\n	return slices.ContainsFunc(stage.Stages", "TestClosedFurtherOn"},
		{"a closed flow does not end Serve", "serve.go", "				if err != nil {\n					stop(err)", "				if err != nil && !IS {\n					stop(err)", "TestClosed$"},
		{"a permanent error is tried again", "serve.go", "	case errors.As(err, new(*permanentError)), delivered", "	case errors.As(err, new(*permanentError)) && !IS, delivered", "TestPermanent"},
		{"a permanent overload waits", "serve.go", "stage.ErrOverload), errors.As(err, new(*permanentError)):", "stage.ErrOverload), errors.As(err, new(*permanentError)) && !IS:", "TestPermanent"},
		{"a dead message is acknowledged only", "serve.go", "		if _, err := q.js.PublishMsg(ctx, dead, opts...); err != nil {", "		if IS {\n			dead.Subject = q.o.Dead + \".nobody\"\n		} else if _, err := q.js.PublishMsg(ctx, dead, opts...); err != nil {", "TestDead$"},
		{"a dead message has no id", "serve.go", "			opts = append(opts, jetstream.WithMsgID(fmt.Sprintf", "			if IS {\n				meta.Timestamp = time.Now()\n			}\n			opts = append(opts, jetstream.WithMsgID(fmt.Sprintf", "TestDeadOnce"},
		{"two queues of one name have one dead message", "serve.go", "			opts = append(opts, jetstream.WithMsgID(fmt.Sprintf", "			if IS {\n				meta.Timestamp = time.Unix(0, 0)\n			}\n			opts = append(opts, jetstream.WithMsgID(fmt.Sprintf", "TestDeadOnce"},
		{"Tries is not looked at", "serve.go", "delivered(m) >= q.o.Tries:", "delivered(m) >= q.o.Tries && !IS:", "TestDead$"},
		{"the servers are not told of progress", "serve.go", "				if err := m.InProgress();", "				if IS {\n					continue\n				}\n				if err := m.InProgress();", "TestInProgress"},
		{"a worker is not promised", "serve.go", "		n--\n", "		if !IS {\n			n--\n		}\n", "TestWidth|TestServe"},
		{"one message a pull", "serve.go", "q.consumer.Fetch(n, ", "q.consumer.Fetch(map[bool]int{true: 1, false: n}[IS], ", "TestPulls"},
		{"a pull that fails is silent", "serve.go", "			q.meet(\"pull\", err)\n", "			if !IS {\n				q.meet(\"pull\", err)\n			}\n", "TestOnError"},
		{"Serve outlives its connection", "serve.go", "			stop(err)\n		} else", "			if !IS {\n				stop(err)\n			}\n		} else", "TestConnectionClosed"},
		{"a try that fails is silent", "serve.go", "		q.report(\"a try\", err)", "		if !IS {\n			q.report(\"a try\", err)\n		}", "TestOnError"},
		{"a message is acknowledged when it begins", "serve.go", "			_, err = answer.Await(ctx)", "			if IS {\n				return nil\n			}\n			_, err = answer.Await(ctx)", "TestTheWholeTree"},
	})
}
