package stage

import (
	"context"
	"runtime/debug"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/suspend"
)

// serve takes the next task and sees it out of the stage. It is called with the guard held and returns so.
func (s *Stage[In, Out]) serve(w *worker) {
	if s.batch != nil {
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
	out, done := s.perform(&e, isLate, w, &v)
	if done && e.way.to != nil {
		if due, ok := e.way.to.pass(e.t, out, w.now, &s.core); ok {
			returned = true
			s.slots--
			s.leave(&e, completed, v.service, w.now)
			w.owed.starting = due
			return
		}
	}
	if done {
		s.handOn(&e, out, &w.now, &v)
	}
	s.decide(&e, &v)
	returned = true
	s.slots--
	s.finish(&e, &v, w.now, &w.owed)
}

// pop takes the next task to begin.
func (s *Stage[In, Out]) pop(e *item[In, Out]) {
	s.queued(-1)
	if r := s.first(); s.o.LIFO && r != &s.hurry {
		r.popBack(e)
	} else {
		r.popFront(e)
	}
	e.left()
}

// left takes note that e has left the queue.
func (e *item[In, Out]) left() {
	if a := e.t.asked; a != nil {
		a.queued = false
	}
}

// begun counts a task that leaves the queue, and reports whether it is too late for it.
func (c *core) begun(since, now int64) (late bool) {
	wait := max(0, now-since)
	c.window.least = min(c.window.least, c.waiting)
	if c.shed.target != 0 && c.shed.late(wait, now) {
		return true
	}
	c.wait.add(wait)
	return false
}

// perform runs the handler, and reports whether its result is to be handed on. Otherwise v is the fate of the task. w.now is
// the time of the last event, before and after.
func (s *Stage[In, Out]) perform(e *item[In, Out], isLate bool, w *worker, v *verdict) (out Out, done bool) {
	t := e.t
	t.at = &s.core
	t.gid.Store(w.gid)
	if isLate || t.over() {
		s.notPaced()
		s.notBegun(t, e.in, v)
		w.now = s.pool.now()
		return out, false
	}
	start := w.now
	out, err := s.call(t, e.in)
	w.now = s.pool.now()
	v.service = w.now - start
	if err != nil {
		s.failure(t, e.in, err, v)
		if s.onFail != nil { // it takes time
			w.now = s.pool.now()
		}
	}
	return out, err == nil
}

// handOn hands the result to the end, or to a stage that is full.
func (s *Stage[In, Out]) handOn(e *item[In, Out], out Out, now *int64, v *verdict) {
	if e.way.to == nil {
		give(e.t, out)
		return
	}
	err := e.way.to.put(s.patience(e.t), e.t, out, always, &s.core)
	*now = s.pool.now()
	if err != nil {
		s.giveUp(e.t, e.in, err, v)
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
			err = &panicked{suspend.PanicError{Value: v, Stack: stack}}
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
		p.running--
		w.at, w.task = nil, nil
		s.slots--
		s.leave(e, failed, 0, p.now())
		p.release()
		e.t.leave(ErrAbandoned)
		p.guard.Lock()
		p.end(w)
	}()
	s.report(e.t, e.in, ErrAbandoned)
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

// panicked is the error of a task whose own handler has panicked.
type panicked struct{ suspend.PanicError }

func (e *panicked) Error() string { return "stage: a handler: " + e.PanicError.Error() }
func (e *panicked) Unwrap() error { return &e.PanicError }
