package stage

import (
	"context"
	"errors"
	"fmt"

	"github.com/braidgo/braid/suspend"
)

// A Closer is what Close closes: a stage, a pool, replicas.
type Closer interface {
	Close(ctx context.Context) error
}

// Close closes stages in the order given, each drained before the next is closed: name them upstream first, and nothing
// that was accepted is lost. It returns the errors of all.
func Close(ctx context.Context, stages ...Closer) error {
	var errs []error
	for _, s := range stages {
		errs = append(errs, s.Close(ctx))
	}
	return errors.Join(errs...)
}

// Close refuses new tasks from now on with ErrClosed, and so the callers that wait for room. It returns nil when no accepted
// task is in the stage any more, retries included. Then its tasks are answered and its idle workers have ended, unless other
// stages share its pool.
//
// If ctx is done first, Close cuts off: tasks that are queued or delayed fail with ErrClosed and go to OnFail, and the
// contexts of submitted tasks in progress are cancelled. It returns the error of the cancellation, which says how many
// handlers still run, and how many wait for another stage. It does not wait for them.
//
// A second Close waits in the same way. In a handler of the stage, Close waits for itself, until ctx is done.
func (s *Stage[In, Out]) Close(ctx context.Context) error {
	p := s.pool
	p.guard.Lock()
	if !s.closed {
		s.closed = true
		for s.outside.Len() > 0 {
			if _, ok := s.outside.ResumeHead(struct{}{}, s.errs.closed); ok {
				_ = s.refuse(nil)
			}
		}
		s.letBegin()
		s.settleIf()
	}
	p.release()
	if _, err := suspend.Wait[struct{}](ctx, draining{&s.core}, false); err != nil {
		if err = s.cutOff(err); err != nil {
			return err
		}
	}
	_, _ = suspend.Wait[struct{}](ctx, leaving{p}, false) // all is done: only the workers are missing
	return nil
}

// cutOff gives up the tasks that a cancelled Close has not waited for.
func (s *Stage[In, Out]) cutOff(err error) error {
	p := s.pool
	p.guard.Lock()
	if s.inside() == 0 {
		p.guard.Unlock()
		return nil
	}
	s.cut = true
	s.letBegin()
	all := func(*item[In, Out]) bool { return true }
	gone := s.take(all)
	delayed, stop := s.takeDelayed()
	gone = append(gone, delayed...)
	s.gaveUp(len(gone))
	var running []*task
	for _, w := range p.workers {
		if w.at == &s.core {
			running = append(running, w.task)
		}
	}
	unblock, run, wait, letGo := s.unblock, s.slots-s.blocked, s.blocked, p.letGo()
	p.guard.Unlock()
	letGo()
	stopAll(stop)
	for _, t := range running {
		t.cutOff(ErrClosed)
	}
	if unblock != nil {
		unblock(ErrClosed)
	}
	s.endAll(gone)
	return fmt.Errorf("%s: closed while %d handlers run, and %d wait for another stage: %w", s.name, run, wait, err)
}

// endAll ends tasks that have been cut off. If OnFail panics, or ends the goroutine, a further endAll ends the
// rest; otherwise their Dos would wait without end.
func (s *Stage[In, Out]) endAll(gone []item[In, Out]) {
	n := 0
	defer func() {
		if n < len(gone) {
			s.endAll(gone[n:])
		}
	}()
	for n < len(gone) {
		n++
		s.end(&gone[n-1], verdict{fate: failed, err: s.errs.closed, service: notServed})
	}
}

// A draining is the wait of Close for the tasks of the stage.
type draining struct{ *core }

func (c draining) Guard() *suspend.Guard                    { return &c.pool.guard }
func (c draining) Try() (none struct{}, ok bool, err error) { return none, c.inside() == 0, nil }
func (c draining) Enqueue(r suspend.Resumer[struct{}])      { c.closers.Push(r, struct{}{}) }
func (c draining) Remove(r suspend.Resumer[struct{}])       { c.closers.Remove(r) }

// A leaving is the wait of Close for the workers, unless another stage of the pool is open.
type leaving struct{ *Pool }

func (p leaving) Guard() *suspend.Guard { return &p.guard }
func (p leaving) Try() (none struct{}, ok bool, err error) {
	return none, p.open > 0 || p.alive == 0, nil
}
func (p leaving) Enqueue(r suspend.Resumer[struct{}]) { p.Pool.closers.Push(r, struct{}{}) }
func (p leaving) Remove(r suspend.Resumer[struct{}])  { p.Pool.closers.Remove(r) }
