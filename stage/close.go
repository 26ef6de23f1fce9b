package stage

import (
	"context"
	"errors"
	"fmt"

	"github.com/braidgo/braid/suspend"
)

// A Closer is a stage, a pool or a flow.
type Closer interface {
	Close(ctx context.Context) error
}

// Close closes stages in the given order, and waits until each is drained before it closes the next. Pass the stages in the order of
// the flow, so that no accepted task is lost. Close joins the errors with errors.Join.
func Close(ctx context.Context, stages ...Closer) error {
	var errs []error
	for _, s := range stages {
		errs = append(errs, s.Close(ctx))
	}
	return errors.Join(errs...)
}

// Close makes the stage refuse new tasks, and tasks that wait for room, with ErrClosed. Close waits until no accepted task is left
// in the stage, retries included. Unless the pool has another open stage, Close then waits until the tasks are answered and the
// workers have ended. Then Close returns nil.
//
// If ctx is done first, Close cuts the tasks off. Queued and delayed tasks fail with ErrClosed and go to OnFail, and the contexts of
// submitted tasks in progress are cancelled. Close then returns the cancellation error, which says how many handlers still run and
// how many wait for another stage. Close does not wait for these handlers.
//
// A second Close waits in the same way. If a handler of the stage calls Close, the call waits for that handler, until ctx is done.
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
	if _, err := suspend.Wait[struct{}](ctx, draining{&s.core}); err != nil {
		if err = s.cutOff(err); err != nil {
			return err
		}
	}
	_, _ = suspend.Wait[struct{}](ctx, leaving{p}) // no task is left, but workers may still run
	return nil
}

// cutOff gives up the tasks that are left when a Close is cancelled. cutOff returns nil if no task is left.
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

// endAll ends tasks that were cut off. If OnFail panics or calls runtime.Goexit, a deferred call of endAll ends the remaining tasks;
// otherwise their Dos would wait without end.
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

// A draining is the Source with which Close waits until the stage is empty.
type draining struct{ *core }

func (c draining) Guard() *suspend.Guard                    { return &c.pool.guard }
func (c draining) Try() (none struct{}, ok bool, err error) { return none, c.inside() == 0, nil }
func (c draining) Enqueue(r suspend.Resumer[struct{}])      { c.closers.Push(r, struct{}{}) }
func (c draining) Remove(r suspend.Resumer[struct{}])       { c.closers.Remove(r) }

// A leaving is the Source with which Close waits for the workers to end. The wait ends early if the pool has an open stage.
type leaving struct{ *Pool }

func (p leaving) Guard() *suspend.Guard { return &p.guard }
func (p leaving) Try() (none struct{}, ok bool, err error) {
	return none, p.open > 0 || p.alive == 0, nil
}
func (p leaving) Enqueue(r suspend.Resumer[struct{}]) { p.Pool.closers.Push(r, struct{}{}) }
func (p leaving) Remove(r suspend.Resumer[struct{}])  { p.Pool.closers.Remove(r) }
