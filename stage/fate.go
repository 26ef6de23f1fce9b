package stage

import (
	"context"
	"errors"
	"time"

	"github.com/braidgo/braid/suspend"
)

// A fate is how a task leaves a stage; but again is a retry, and keeps it there.
type fate uint8

const (
	completed fate = iota
	failed
	dropped // failed with an ErrOverload: that of a stage or a server further on
	late
	cancelled
	again
)

// A verdict is a fate and its reason.
type verdict struct {
	fate  fate
	after time.Duration // again: the delay
	err   error
}

// failure finds the fate of a task whose handler has failed.
func (s *Stage[In, Out]) failure(t *task, in In, err error, v *verdict) {
	t.tries++
	if after, ok := s.retry(t, err, int(t.tries)); ok {
		v.fate, v.after, v.err = again, after, err
		return
	}
	s.giveUp(t, in, err, v)
}

// giveUp finds the fate of a task that has failed for good.
func (s *Stage[In, Out]) giveUp(t *task, in In, err error, v *verdict) {
	switch v.err = err; {
	case t.over() && isEndOf(t, err):
		v.fate = cancelled
		return
	case errors.Is(err, ErrOverload):
		v.fate = dropped
	default:
		v.fate = failed
	}
	s.dead(t, in, err)
}

func (s *Stage[In, Out]) dead(t *task, in In, err error) {
	if s.onFail != nil {
		s.onFail(t, in, err)
	}
}

// finish counts the fate of a task that was in progress. The debt of its worker goes to an empty o. The task is told that it
// is done only when its slot is free.
func (s *Stage[In, Out]) finish(e *item[In, Out], v *verdict, service, now int64, o *owed) {
	if v.fate == again && s.cut { // Close has not seen it, as it was in progress
		s.leave(failed, service, now)
		o.after = &lost[In, Out]{s, *e, v.err}
		return
	}
	s.leave(v.fate, service, now)
	switch {
	case v.fate == again:
		o.after = s.postpone(*e, v.after)
	case v.fate != completed || e.way.to == nil:
		o.leave, o.err = e.t, v.err
	}
}

// lost is a task that is given up when the guard is free.
type lost[In, Out any] struct {
	s   *Stage[In, Out]
	e   item[In, Out]
	err error
}

func (l *lost[In, Out]) start() {
	l.s.dead(l.e.t, l.e.in, l.err)
	l.e.t.leave(l.err)
}

// leave counts a task that is in progress no more.
func (s *Stage[In, Out]) leave(f fate, service, now int64) {
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
	if f != late && f != cancelled && service != unmeasured {
		s.service.add(service)
		s.window.done++
		s.window.service += service
	}
	if f != again {
		s.settleIf()
		s.admit(now)
	}
}

func (c *core) settleIf() {
	if c.closed && c.inside() == 0 {
		c.pool.settle()
	}
}

func errorOf(t *task) error {
	if err := suspend.Err(t); err != nil {
		return err
	}
	return context.Canceled
}

func isEndOf(ctx context.Context, err error) bool {
	return errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))
}
