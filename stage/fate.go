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

// giveUp sets v for a task that has failed for good, and calls OnFail unless the caller has cancelled the task.
func (s *Stage[In, Out]) giveUp(t *task, in In, err error, v *verdict) {
	switch v.err = err; {
	case t.over() && isEndOf(t, err) && !t.wasCut():
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
	case !t.over():
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

// decide locks the guard for the call of s.finish that follows. A task that a Close cuts off while its handler runs is not tried
// again.
func (s *Stage[In, Out]) decide(e *item[In, Out], v *verdict) {
	s.pool.guard.Lock()
	if v.fate == again && s.cut {
		s.pool.guard.Unlock()
		s.giveUp(e.t, e.in, v.err, v)
		s.pool.guard.Lock()
	}
}

// finish counts the fate of a task that was in progress. What remains to be done after the unlock is stored in o, which must be
// empty: the slot of a task must be free before the task ends.
func (s *Stage[In, Out]) finish(e *item[In, Out], v *verdict, now int64, o *owed) {
	switch {
	case v.fate == again:
		o.after = s.postpone(*e, v.after)
	case v.fate != completed || e.way.to == nil:
		o.leave, o.err = e.t, v.err
	}
	s.leave(e, v.fate, v.service, now)
}

// vacate gives back the slot and the permit of a handler, and counts the fate. The caller must hold the guard, and vacate unlocks it
// before it returns.
func (s *Stage[In, Out]) vacate(e *item[In, Out], v *verdict, now int64, o *owed) {
	s.slots--
	s.pool.running--
	s.finish(e, v, now, o)
	s.pool.release()
}

// leave counts the fate of a task that is no longer in progress. The slot of the task must be free.
func (s *Stage[In, Out]) leave(e *item[In, Out], f fate, service, now int64) {
	s.progress--
	switch f {
	case completed:
		s.completed++
	case failed:
		s.failed++
	case dropped:
		s.failed++
		s.dropped++
	case late:
		s.late++
	case cancelled:
		s.cancelled++
	}
	if f != late && f != cancelled && service != notServed {
		s.service.add(service)
		s.window.done++
		s.window.service += service
	}
	if f != again {
		if e.ticket == lent {
			s.lent--
		}
		s.settleIf()
		s.admit(now)
	}
	s.lose()
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

// gaveUp counts n tasks, which were taken off the queue, as tasks in progress until s.end has been called for each.
func (c *core) gaveUp(n int) {
	c.progress += n
	c.givenUp += n
}

// end gives up a task that was taken off the queue and counted by gaveUp.
func (s *Stage[In, Out]) end(e *item[In, Out], v verdict) {
	t := e.t
	defer func() {
		t.ends(v.err)
		s.pool.guard.Lock()
		s.givenUp--
		s.leave(e, v.fate, v.service, s.pool.now())
		s.pool.release()
	}()
	t.gid.Store(0) // t is in no handler
	if t.over() && !t.wasCut() {
		v.fate, v.err = cancelled, errorOf(t)
		return
	}
	s.report(t, e.in, v.err)
}

// tell calls s.end for a task that belongs to another caller. OnFail may suspend, so it runs in a new task.
func (s *Stage[In, Out]) tell(e item[In, Out], v verdict) {
	end := func() { s.end(&e, v) }
	if s.onFail == nil {
		end()
	} else if s.pool.on.Go(end) != nil {
		go end()
	}
}
