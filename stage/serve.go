package stage

import (
	"context"
	"runtime/debug"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/suspend"
)

// serve takes the next task from the queue, and serves it until it leaves the stage or is delayed. The caller must hold the guard,
// which is held again when serve returns.
func (s *Stage[In, Out]) serve(w *worker) {
	if s.batchFunc != nil {
		s.serveBatch(w)
		return
	}
	if s.paced && s.holds(w) {
		return
	}
	var e item[In, Out]
	s.pop(&e)
	s.slots++
	s.progress++
	isLate := s.begun(e.since, w.now)
	w.at, w.task = &s.core, e.t
	s.pool.release()
	w.owed.pay()
	w.named(&s.core)

	returned := false
	defer func() {
		if !returned {
			s.abandoned(w, &e)
		}
	}()
	v := verdict{}
	if _, passed := s.perform(&e, isLate || e.t.over(), w.gid, &w.now, &v, &w.owed.dues); passed {
		returned = true
		s.slots--
		s.leave(&e, completed, v.service, w.now)
		return
	}
	s.decide(&e, &v)
	returned = true
	s.slots--
	s.finish(&e, &v, w.now, &w.owed)
}

// pop removes the next task from the queue and stores it in e.
func (s *Stage[In, Out]) pop(e *item[In, Out]) {
	s.queued(-1)
	if r := s.first(); s.o.LIFO && r != &s.hurry {
		r.popBack(e)
	} else {
		r.popFront(e)
	}
	e.left()
}

// begun counts a task that has left the queue, and reports whether the task has waited too long.
func (c *core) begun(since, now int64) (late bool) {
	wait := max(0, now-since)
	c.window.least = min(c.window.least, c.waiting)
	if c.shed.target != 0 && c.shed.late(wait, now) {
		return true
	}
	c.wait.add(wait)
	return false
}

// perform runs the handler and sets v. If skip is true, the task is late or over, and the handler does not run. The caller sets *now
// to the time of the last event, and perform updates *now.
func (s *Stage[In, Out]) perform(e *item[In, Out], skip bool, gid int64, now *int64, v *verdict, due *dues) (out Out, passed bool) {
	e.t.at = &s.core
	e.t.gid.Store(gid)
	if skip {
		s.notPaced()
		s.notBegun(e.t, e.in, v)
		*now = s.pool.now()
		return out, false
	}
	start := *now
	out, err := s.call(e.t, e.in)
	*now = s.pool.now()
	v.service = *now - start
	return out, s.handOn(e, out, err, now, v, due)
}

// handOn passes the result to the next stage or to the answer. After an error, it sets v. If passed is true, the task has entered
// the next stage, and the guard is held.
func (s *Stage[In, Out]) handOn(e *item[In, Out], out Out, err error, now *int64, v *verdict, due *dues) (passed bool) {
	gid := e.t.gid.Load()
	switch {
	case err != nil:
		if s.failure(e.t, e.in, err, v); s.onFail != nil { // OnFail may take time
			*now = s.pool.now()
		}
		e.t.gid.Store(0) // the handler has returned, and its goroutine may soon run another handler
		return false
	case e.way.to == nil:
		e.t.gid.Store(0)
		give(e.t, out)
		return false
	}
	e.t.gid.Store(0)
	if *due, passed = e.way.to.pass(e.t, out, *now, &s.core); passed {
		return true
	}
	err = e.way.to.put(s.patience(e.t), e.t, out, always, &s.core)
	*now = s.pool.now()
	if err != nil {
		e.t.gid.Store(gid) // OnFail counts as a part of the handler
		s.giveUp(e.t, e.in, err, v)
		e.t.gid.Store(0)
	}
	return false
}

// abandoned gives up the task while a panic or a runtime.Goexit ends the worker.
func (s *Stage[In, Out]) abandoned(w *worker, e *item[In, Out]) {
	defer func() {
		s.abandon(e)
		s.pool.guard.Lock()
		s.pool.end(w)
	}()
	s.report(e.t, e.in, ErrAbandoned)
}

// abandon fails a task whose handler has not returned, and gives back its slot and permit.
func (s *Stage[In, Out]) abandon(e *item[In, Out]) {
	var o owed
	s.pool.guard.Lock()
	s.vacate(e, &verdict{fate: failed, err: ErrAbandoned}, s.pool.now(), &o)
	o.pay()
}

// call calls the handler. If OnPanic is set, call turns a panic into an error.
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
		if v := recover(); v != nil { // recover returns nil after a runtime.Goexit, which continues
			stack := debug.Stack()
			c.o.OnPanic(v, stack)
			err = &panicked{suspend.PanicError{Value: v, Stack: stack}}
		}
	}()
	err = f()
	returned = true
	return err
}

// patience returns the context with which a worker waits for room in the next stage. If t was submitted, only a Close that cuts the
// stage off ends this context.
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

// give stores the result of t, which is about to leave its last stage.
func give[Out any](t *task, out Out) {
	switch a := t.answer.(type) {
	case *reply[Out]:
		a.out = out
	case *fed[Out]:
		a.out = out
	}
}
