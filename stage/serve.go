package stage

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/gid"
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

// serve takes the next task and sees it out of the stage. It is called with the guard held and returns so.
func (s *Stage[In, Out]) serve(w *worker) {
	if s.batch != nil {
		s.serveBatch(w)
		return
	}
	e := s.pop()
	s.slots++
	s.progress++
	isLate := s.begun(e.since, w.now)
	w.at, w.task = &s.core, e.t
	s.pool.release()
	w.pay()
	w.named(&s.core)

	start := w.now
	returned := false
	defer func() {
		if !returned {
			s.abandoned(w, &e)
		}
	}()
	v := s.perform(&e, isLate, w.gid, &w.now)
	returned = true

	if !v.locked {
		s.pool.guard.Lock()
	}
	w.at, w.task = nil, nil
	s.slots--
	w.owes = s.finish(&e, &v, w.now-start, w.now, &w.owed)
}

// A verdict is the result of perform.
type verdict struct {
	fate   fate
	after  time.Duration // again: the delay
	err    error
	locked bool // the task has been passed on, and the guard is held
	due    starting
}

// finish counts the fate of a task that was in progress. The debt of its worker goes to an empty o, and finish reports
// whether there is one. The task is told that it is done only when its slot is free.
func (s *Stage[In, Out]) finish(e *item[In, Out], v *verdict, service, now int64, o *owed) (owes bool) {
	if v.fate == again && s.cut { // Close has not seen it, as it was in progress
		s.leave(failed, service, now)
		o.after = &lost[In, Out]{s, *e, v.err}
		return true
	}
	s.leave(v.fate, service, now)
	switch {
	case v.fate == again:
		o.after = s.postpone(*e, v.after)
	case v.fate != completed || isEnd(e.to):
		o.leave, o.err = e.t, v.err
	case v.due.n > 0:
		o.starting = v.due
	default:
		return false
	}
	return true
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

// isEnd reports whether the way of the task ends behind this stage, so that nobody else has it now.
func isEnd[T any](to port[T]) bool {
	_, ok := to.(end[T])
	return ok
}

// pop takes the next task to begin.
func (s *Stage[In, Out]) pop() item[In, Out] {
	s.waiting--
	if s.o.LIFO {
		return s.ring.popBack()
	}
	return s.ring.popFront()
}

// begun counts a task that leaves the queue, and reports whether it is too late for it.
func (c *core) begun(since, now int64) (late bool) {
	wait := max(0, now-since)
	c.wait.add(wait)
	c.window.least = min(c.window.least, c.waiting)
	return c.shed.late(wait, now)
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
	if f != late && f != cancelled {
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

// perform runs the handler and hands the result on, or finds another fate. *now is the time of the last event, before and
// after.
func (s *Stage[In, Out]) perform(e *item[In, Out], isLate bool, id int64, now *int64) verdict {
	t := e.t
	switch {
	case isLate:
		s.dead(t, e.in, s.errs.late)
		return verdict{fate: late, err: s.errs.late}
	case t.over():
		return verdict{fate: cancelled, err: errorOf(t)}
	}
	t.at = &s.core
	t.gid.Store(id)
	e.try++
	out, err := s.call(t, e.in)
	*now = s.pool.now()
	if err != nil {
		if after, ok := s.retry(t, err, int(e.try)); ok {
			return verdict{fate: again, after: after, err: err}
		}
		return s.failure(t, e.in, err)
	}
	if due, ok := e.to.pass(t, out, *now, &s.core); ok {
		return verdict{locked: true, due: due}
	}
	return s.handOn(e, out, now)
}

// handOn hands the result to the end, or to a stage that is full.
func (s *Stage[In, Out]) handOn(e *item[In, Out], out Out, now *int64) verdict {
	ctx := context.Context(e.t)
	last := isEnd(e.to)
	if !last {
		ctx = s.patience(e.t)
	}
	err := e.to.put(ctx, e.t, out, always, &s.core)
	if !last {
		*now = s.pool.now()
	}
	if err != nil {
		return s.failure(e.t, e.in, err)
	}
	return verdict{}
}

// failure is the fate of a task whose handler failed for good.
func (s *Stage[In, Out]) failure(t *task, in In, err error) verdict {
	if t.over() && isEndOf(t, err) {
		return verdict{fate: cancelled, err: err}
	}
	s.dead(t, in, err)
	if errors.Is(err, ErrOverload) {
		return verdict{fate: dropped, err: err}
	}
	return verdict{fate: failed, err: err}
}

func (s *Stage[In, Out]) dead(t *task, in In, err error) {
	if s.onFail != nil {
		s.onFail(t, in, err)
	}
}

// call calls the handler, and turns a panic into an error if there is somebody to tell.
func (s *Stage[In, Out]) call(ctx context.Context, in In) (out Out, err error) {
	if s.o.OnPanic == nil {
		return s.f(ctx, in)
	}
	err = s.recovered(func() (err error) {
		out, err = s.f(ctx, in)
		return err
	})
	return out, err
}

func (c *core) recovered(f func() error) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil { // or else it is a runtime.Goexit, which goes on
			stack := debug.Stack()
			c.o.OnPanic(v, stack)
			err = &PanicError{v, stack}
		}
	}()
	err = f()
	returned = true
	return err
}

// abandoned is called while a panic or a Goexit ends the worker. It gives back the slot and the permit.
func (s *Stage[In, Out]) abandoned(w *worker, e *item[In, Out]) {
	defer func() {
		p := s.pool
		p.guard.Lock()
		w.at, w.task = nil, nil
		p.running--
		p.end(w)
		s.slots--
		s.leave(failed, 0, p.now())
		p.release()
		e.t.leave(ErrAbandoned)
	}()
	s.dead(e.t, e.in, ErrAbandoned)
}

// patience is the context with which the task of a worker waits for room in the next stage.
func (s *Stage[In, Out]) patience(t *task) context.Context {
	if t.until != cut {
		return t
	}
	s.pool.guard.Lock()
	defer s.pool.guard.Unlock()
	if s.blocking == nil {
		s.blocking, s.unblock = cancel.New(context.Background())
		if s.cut {
			s.unblock(ErrClosed)
		}
	}
	return s.blocking
}

// mayInline reports whether a Do may run the handler on its caller, and takes the slot and the permit. A handler of the
// same stage lends its own.
func (s *Stage[In, Out]) mayInline(from *core, now int64) (ok bool) {
	lent := from == &s.core
	if s.f == nil || !lent && (from != nil || !s.pool.inline || suspend.Here() != s.pool.on) {
		return false
	}
	p := s.pool
	p.guard.Lock()
	defer p.guard.Unlock()
	if s.closed || !lent && (s.waiting > 0 || s.slots >= s.width || p.running >= p.width || s.outside.Len() > 0) {
		return false
	}
	s.arrived++
	s.accepted++
	s.progress++
	if !lent {
		s.slots++
		p.running++
	}
	s.begun(now, now)
	return true
}

// inline runs the handler on the caller of Do, and reports whether the task is done. Then nobody else has seen it, and
// the promise need not be filled.
func (s *Stage[In, Out]) inline(c *call[Out], in In, start int64, lent bool) (err error, done bool) {
	e := item[In, Out]{t: &c.task, to: s.entry.to, in: in}
	v := verdict{fate: failed, err: ErrAbandoned}
	now := start
	returned := false
	defer func() {
		if !returned && s.o.OnPanic == nil {
			if v := recover(); v != nil {
				endProcess(v, debug.Stack()) // a recover of the caller must not hide it
			}
		}
		if !returned {
			s.dead(e.t, in, v.err)
		}
		p := s.pool
		p.guard.Lock()
		if !lent {
			s.slots--
			p.running--
		}
		var o owed
		s.finish(&e, &v, now-start, now, &o)
		p.release()
		if err, done = o.err, o.leave != nil && c.leaveAlone(&err); !done {
			o.pay()
		}
	}()
	v = s.perform(&e, false, gid.Get(), &now)
	returned = true
	return nil, false // the deferred function decides
}

// endProcess ends the process as a panic of a worker does.
func endProcess(v any, stack []byte) {
	go panic(fmt.Sprintf("%v\n\nin a handler that ran on the caller of Do:\n%s", v, stack))
	select {}
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
