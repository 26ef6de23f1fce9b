package stage

import (
	"context"
	"runtime/debug"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/suspend"
)

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

// give stores the result of t, whose way has ended.
func give[Out any](t *task, out Out) {
	switch a := t.answer.(type) {
	case *reply[Out]:
		a.out = out
	case *fed[Out]:
		a.out = out
	}
}

// panicked is the error of a task whose own handler has panicked.
type panicked struct{ suspend.PanicError }

func (e *panicked) Error() string { return "stage: a handler: " + e.PanicError.Error() }
func (e *panicked) Unwrap() error { return &e.PanicError }
