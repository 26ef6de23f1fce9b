package stage

import (
	"context"
	"errors"
	"time"

	"github.com/braidgo/braid/suspend"
)

// A fate says how a task leaves a stage. The value again means that the task stays in the stage for another try.
type fate uint8

const (
	completed fate = iota
	failed
	dropped // failed with an ErrOverload, from another stage or a server
	late
	cancelled
	again
)

// A verdict is a fate and its reason.
type verdict struct {
	fate    fate
	after   time.Duration // the delay before the next try, if there is one
	err     error
	service int64 // the running time of the handler in nanoseconds, or notServed
}

const notServed = int64(-1)

// failure sets v for a task whose handler has failed.
func (s *Stage[In, Out]) failure(t *task, in In, err error, v *verdict) {
	t.tries++
	if after, ok := s.retry(t, err, int(t.tries)); ok {
		v.fate, v.after, v.err = again, after, err
		return
	}
	s.giveUp(t, in, err, v)
}

// retry calls Options.Retry, which decides whether a failed task begins again. A task whose handler panicked, or whose context is
// done, does not begin again, and neither does one for which the budget has no token.
func (s *Stage[In, Out]) retry(t *task, err error, try int) (after time.Duration, again bool) {
	if _, ofPanic := err.(*panicked); ofPanic || s.o.Retry == nil || t.unwanted() {
		return 0, false
	}
	after, again = s.o.Retry(err, try)
	if again && s.o.RetryBudget != nil && !s.o.RetryBudget.withdraw() {
		s.unretried.Add(1)
		return 0, false
	}
	return after, again
}

// giveUp sets v for a task that has failed for good, and calls OnFail unless the caller has cancelled the task.
func (s *Stage[In, Out]) giveUp(t *task, in In, err error, v *verdict) {
	switch v.err = err; {
	case t.unwanted() && isEndOf(t, err) && !t.wasCut():
		v.fate = cancelled
		return
	case errors.Is(err, ErrOverload):
		v.fate = dropped
	default:
		v.fate = failed
	}
	s.report(t, in, err)
}

// notBegun sets v for a task that does not begin, because it is late or its context is done.
func (s *Stage[In, Out]) notBegun(t *task, in In, v *verdict) {
	switch {
	case !t.unwanted():
		v.fate, v.err = late, s.errs.late
	case !t.wasCut():
		v.fate, v.err = cancelled, errorOf(t)
		return
	default:
		v.fate, v.err, v.service = failed, errorOf(t), notServed
	}
	s.report(t, in, v.err)
}

// report calls OnFail, at most once for each task. OnFail may panic or call runtime.Goexit, so the caller must count the fate and
// end the task in a deferred function.
func (s *Stage[In, Out]) report(t *task, in In, err error) {
	if s.onFail != nil && !t.dead {
		t.dead = true
		s.onFail(t, in, err)
	}
}

// errorOf returns the error of a task that is over. If the task's context panics, errorOf returns context.Canceled, because the
// caller may be a worker of another stage.
func errorOf(t *task) (err error) {
	defer func() {
		if recover() != nil {
			err = context.Canceled
		}
	}()
	if err := suspend.Err(t); err != nil {
		return err
	}
	return context.Canceled
}

func isEndOf(ctx context.Context, err error) bool {
	return errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))
}
