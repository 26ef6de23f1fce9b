package stage

import (
	"context"
	"runtime/pprof"
)

// New returns a stage that calls f with each task. At most o.Width calls run at the same time, and at most o.Queue tasks wait. New
// starts no workers: tasks start them on demand, and workers end when no task is left.
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
	if b := o.RetryBudget; b != nil && !(b.Ratio >= 0 && b.Burst >= 0) {
		panic("stage: negative RetryBudget")
	}
	if o.RetryBudget != nil && o.Retry == nil {
		panic("stage: RetryBudget without Retry")
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
	s := &Stage[In, Out]{core: core{name: name, pool: p, o: o, slots: slots{width: o.Width}}}
	s.entry.s = s
	s.server = s
	s.errs = stageErrors{&stageError{name, ErrFull}, &stageError{name, ErrLate}, &stageError{name, ErrDisplaced}, &stageError{name, ErrClosed}}
	s.labels = pprof.WithLabels(context.Background(), pprof.Labels("stage", name))
	s.shed.target = int64(o.Delay)
	s.pace.set(o)
	s.paced = o.Rate > 0 || o.Gather > 0
	p.guard.Lock()
	p.open++
	p.closers.ResumeAll(struct{}{}, nil) // the pool has an open stage again, so no Shutdown waits for its workers
	p.guard.Unlock()
	return s
}

// OnFail sets f, the dead-letter function: the stage calls f once for each accepted task that it gives up. A task is given up if it
// has failed for good, is late or displaced, or is cut off by Close. f may suspend. The stage does not call f for a task whose
// caller has cancelled it, unless the handler was running and failed with an error other than its context's. OnFail returns s. Call
// OnFail before the first task.
func (s *Stage[In, Out]) OnFail(f func(ctx context.Context, in In, err error)) *Stage[In, Out] {
	s.onFail = f
	return s
}

// Prioritize sets f, which returns the priority of a task, from 0 to 3. Without f, the priority is 0. A priority outside this range
// is clamped. Tasks of a higher priority begin first. If a full queue would reject a task, the task displaces the last queued task
// of the lowest priority, if that priority is lower than the new task's own. The displaced task fails with ErrDisplaced, and counts
// as Late. Callers that wait for room get it in the order of arrival. Prioritize returns s. Call Prioritize before the first task.
func (s *Stage[In, Out]) Prioritize(f func(in In) int) *Stage[In, Out] {
	s.priority = f
	s.urgent = make([]ring[item[In, Out]], levels-1)
	return s
}
