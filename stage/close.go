package stage

import (
	"context"
	"errors"
	"fmt"

	"github.com/braidgo/braid/suspend"
)

// A Closer is a stage, a pool or a flow.
type Closer interface {
	Close() error
	Shutdown(ctx context.Context) error
}

// Shutdown shuts stages down in the given order, and waits until each is drained before it shuts down the next. Pass the stages in the
// order of the flow, so that no accepted task is lost. Shutdown joins the errors with errors.Join.
func Shutdown(ctx context.Context, stages ...Closer) error {
	var errs []error
	for _, s := range stages {
		errs = append(errs, s.Shutdown(ctx))
	}
	return errors.Join(errs...)
}

// Shutdown makes the stage refuse new tasks, and tasks that wait for room, with ErrClosed. Shutdown waits until no accepted task is left
// in the stage, retries included. Unless the pool has another open stage, Shutdown then waits until the tasks are answered and the
// workers have ended. Then Shutdown returns nil.
//
// If ctx is done first, Shutdown cuts the tasks off. Queued and delayed tasks fail with ErrClosed and go to OnFail, and the contexts of
// submitted tasks in progress are cancelled. Shutdown then returns the cancellation error, which says how many tasks it has given up, how
// many handlers still run and how many wait for another stage. Shutdown does not wait for these handlers.
//
// A second Shutdown waits in the same way. Shutdown returns nil although tasks were given up, if it was a Close, or another Shutdown, that
// gave them up before it or in parallel: only the call that gives tasks up says so, and OnFail gets each task. If a handler of the stage
// calls Shutdown, the call waits for that handler, until ctx is done.
func (s *Stage[In, Out]) Shutdown(ctx context.Context) error {
	s.refuseNew()
	if err := s.waitEmpty(ctx); err != nil {
		if err = s.cutOff(err); err != nil {
			return err
		}
	}
	s.pool.waitWorkers(ctx) // no task is left, but workers may still run
	return nil
}

// Close closes the stage at once: it cuts the tasks off, as a Shutdown does whose ctx is done. If a task is left, Close returns an error
// that wraps ErrClosed and says how many tasks it has given up, how many handlers still run and how many wait for another stage. So a Close
// that returns nil has lost no task; to lose none, call Shutdown. Close suspends only if OnFail suspends. A handler of the stage may call
// Close.
func (s *Stage[In, Out]) Close() error {
	s.refuseNew()
	return s.cutOff(ErrClosed)
}

// refuseNew makes the stage refuse new tasks, and tasks that wait for room.
func (s *Stage[In, Out]) refuseNew() {
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
	p.unlockAndPay()
}

// cutOff gives up the tasks that are left in a closed stage, and returns an error that wraps err. cutOff returns nil if no task is left.
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
	gone := s.removeQueued(all)
	delayed, stop := s.takeDelayed()
	gone = append(gone, delayed...)
	s.gaveUp(len(gone))
	var running []*task
	for _, w := range p.workers {
		if w.at == &s.core {
			running = append(running, w.task)
		}
	}
	unblock, run, wait, letGo := s.unblock, s.taken-s.blocked, s.blocked, p.letGo()
	p.guard.Unlock()
	letGo()
	stopAll(stop)
	for _, t := range running {
		t.cutOff(ErrClosed)
	}
	if unblock != nil {
		unblock(ErrClosed)
	}
	s.giveUpAll(gone)
	return fmt.Errorf("%s: closed: %d tasks were dropped, %d handlers still run, and %d tasks wait for another stage: %w", s.name, len(gone), run, wait, err)
}

// giveUpAll ends tasks that were cut off. If OnFail panics or calls runtime.Goexit, a deferred call of giveUpAll ends the remaining tasks;
// otherwise their Dos would wait without end.
func (s *Stage[In, Out]) giveUpAll(gone []item[In, Out]) {
	n := 0
	defer func() {
		if n < len(gone) {
			s.giveUpAll(gone[n:])
		}
	}()
	for n < len(gone) {
		n++
		s.giveUpQueued(&gone[n-1], verdict{fate: failed, err: s.errs.closed, service: notServed})
	}
}

// waitEmpty waits until no accepted task is left in the stage. It is not a generic function, so that the compiler does not repeat the
// wait for each type of stage.
func (c *core) waitEmpty(ctx context.Context) error {
	_, err := suspend.Wait[struct{}](ctx, draining{c})
	return err
}

// A draining is the Source of waitEmpty.
type draining struct{ c *core }

func (d draining) Guard() *suspend.Guard                    { return &d.c.pool.guard }
func (d draining) Try() (none struct{}, ok bool, err error) { return none, d.c.inside() == 0, nil }
func (d draining) Enqueue(r suspend.Resumer[struct{}])      { d.c.closers.Push(r, struct{}{}) }
func (d draining) Remove(r suspend.Resumer[struct{}])       { d.c.closers.Remove(r) }

// waitWorkers waits until the workers of p have ended. The wait ends early if the pool has an open stage, or if ctx is done.
func (p *Pool) waitWorkers(ctx context.Context) {
	_, _ = suspend.Wait[struct{}](ctx, leaving{p})
}

// A leaving is the Source of waitWorkers.
type leaving struct{ p *Pool }

func (l leaving) Guard() *suspend.Guard { return &l.p.guard }
func (l leaving) Try() (none struct{}, ok bool, err error) {
	return none, l.p.open > 0 || l.p.alive == 0, nil
}
func (l leaving) Enqueue(r suspend.Resumer[struct{}]) { l.p.closers.Push(r, struct{}{}) }
func (l leaving) Remove(r suspend.Resumer[struct{}])  { l.p.closers.Remove(r) }
