package stage

import (
	"context"
	"runtime/pprof"
)

// New returns a stage that calls f with each task, in up to Width calls at once, while Queue tasks wait. It starts nothing:
// tasks start the workers, which end when no task is left.
func New[In, Out any](name string, f func(ctx context.Context, in In) (Out, error), o Options) *Stage[In, Out] {
	if f == nil {
		panic("stage: nil function")
	}
	o.Batch = 0
	s := newStage[In, Out](name, o)
	s.f = f
	return s
}

func newStage[In, Out any](name string, o Options) *Stage[In, Out] {
	if o.Queue < NoQueue || o.Width < 0 || o.Batch < 0 {
		panic("stage: negative Width, Queue or Batch")
	}
	if o.Gather < 0 || o.Burst < 0 || !(o.Rate >= 0) {
		panic("stage: negative Gather, Rate or Burst")
	}
	p := o.Pool
	switch {
	case p == nil:
		o.Width = max(o.Width, 1)
		p = NewPool(name, o.Width, o.On)
	case o.Width == 0:
		o.Width = p.width
	}
	switch o.Queue {
	case 0:
		o.Queue = o.Width
	case NoQueue:
		o.Queue = 0
	}
	s := &Stage[In, Out]{core: core{name: name, pool: p, o: o, width: o.Width}}
	s.entry.s = s
	s.server = s
	s.errs = stageErrors{&stageError{name, ErrFull}, &stageError{name, ErrLate}, &stageError{name, ErrDisplaced}, &stageError{name, ErrClosed}}
	s.labels = pprof.WithLabels(context.Background(), pprof.Labels("stage", name))
	s.shed.target = int64(o.Delay)
	s.pace.set(o)
	s.paced = o.Rate > 0 || o.Gather > 0
	p.guard.Lock()
	p.open++
	p.closers.ResumeAll(struct{}{}, nil) // the workers may stay
	p.guard.Unlock()
	return s
}

// OnFail sets f to be called once for each accepted task that s gives up: it failed, for good, or was late, or was cut off by
// Close. It is the dead letter, called in place of the handler, and may suspend. A task that its own caller has cancelled
// is not reported, unless its handler was running and failed with another error than its context's. OnFail returns s; call it before the first task.
func (s *Stage[In, Out]) OnFail(f func(ctx context.Context, in In, err error)) *Stage[In, Out] {
	s.onFail = f
	return s
}

// SetWidth changes the number of tasks that may be in progress, and the width of the pool unless it is shared. If more
// handlers run already, they are not interrupted.
func (s *Stage[In, Out]) SetWidth(n int) {
	if n < 1 {
		panic("stage: a stage without a width")
	}
	s.pool.guard.Lock()
	s.setWidth(n)
	s.admit(s.pool.now())
	s.pool.release()
}
