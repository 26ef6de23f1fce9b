package scope

import (
	"context"
	"errors"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// A Policy decides whether the failure of a child ends its siblings.
type Policy int

const (
	FirstError Policy = iota // a failure cancels all children, as in Run
	Collect                  // a failure cancels nothing, and all failures are reported at the end
)

// A Group is a Scope that is not the extent of a function: a service opens it in its constructor, and closes it in its Close. Until then it
// has no end, also without children. Limit the number of children by the Spawner: g.Go(scope.Limit(4, pool), f).
//
//	func newServer(ctx context.Context) *server {
//		s := &server{tasks: scope.Open(ctx, scope.FirstError)}
//		_ = s.tasks.Go(suspend.Goroutines, s.serve)
//		return s
//	}
//
//	func (s *server) Close() error { return s.tasks.Close() }
//
// Use Run where a function can wait for the children, and idle.Group where "all tasks wait" is an event.
type Group struct {
	*Scope
	// The Group itself is a member until it is closed or shut down. -E> is the first Close or Shutdown.
	//
	//	open    -E> closing   the membership ends
	//	closing -E> closed    all members have ended, and the functions of OnRelease have been called
	closing atomicx.Bool
	closer  atomicx.Int64 // the goroutine of the first Close or Shutdown
	closed  promise.Promise[struct{}]
}

// Open returns a Group whose children get a context that ends with ctx. If ctx is done already, no child can be started. An open Group
// has to be closed, or shut down. With Collect, each failure is kept until then.
func Open(ctx context.Context, policy Policy) *Group {
	g := &Group{Scope: open(ctx)}
	g.collects = policy == Collect
	return g
}

// Close cancels the children, waits until they have ended, calls the functions of OnRelease, and returns the first
// failure, or all of them joined. As after Cancel(nil), a cancellation by Close is no failure. Later calls wait for the
// same end and return the same error. A call by a function of OnRelease would wait for itself, so it returns the
// failure so far. Close suspends its caller, which must be no child of g, and cannot be cancelled.
func (g *Group) Close() error {
	_ = suspend.Self() // panics where suspending is forbidden
	g.Cancel(nil)
	return g.shutdown(context.Background())
}

// Shutdown is a Close that leaves the children time. It waits until they have ended. Children may still start children. If ctx is done
// first, that is a failure, and cancels the children.
func (g *Group) Shutdown(ctx context.Context) error {
	_ = suspend.Self()
	preempt.Looks(preempt.Members) // the children may end before ctx
	return g.shutdown(ctx)
}

func (g *Group) shutdown(ctx context.Context) (err error) {
	suspend.Preemptible()
	first := !g.closing.Swap(true)
	if first {
		g.closer.Store(gid.Get())
		defer func() {
			g.closer.Store(0) // a later call by this goroutine must wait for the result
			g.closed.Resolve(struct{}{}, err)
		}()
		defer g.finish(&err)
		g.leave()
	}
	asked := false
	defer func() {
		if !asked { // ctx has panicked, or is nil
			g.fail(ErrAbandoned)
		}
	}()
	_, late := g.over.Await(ctx)
	asked = true
	if _, over, _ := g.over.Try(); !over {
		g.fail(late)
	}
	switch {
	case first:
	case g.closer.Load() == gid.Get(): // a function of OnRelease calls Close
		err = g.failure()
	default:
		_, err = g.closed.Await(context.Background())
	}
	return err
}

// A Child is the handle of a child that Start has started. As a Future it has the results of its function. A function that did not return
// has ErrAbandoned, and a function that never ran has the cancellation error.
type Child[T any] struct {
	promise.Future[T]
	results promise.Promise[T]

	s       *Scope
	ctx     context.Context
	cancel  func(cause error)
	stopped atomicx.Bool // Cancel was called
}

// Start is s.Go for a function with a result, and returns a handle of the child. A failure of f is a failure of s, too.
func Start[T any](s *Scope, on suspend.Spawner, f func(ctx context.Context) (T, error)) (*Child[T], error) {
	check(on, f != nil)
	c := &Child[T]{s: s}
	c.Future = &c.results
	c.ctx, c.cancel = cancel.New(s.ctx)
	started := false
	defer func() {
		if !started { // refused, or the spawner has panicked
			c.cancel(nil)
		}
	}()
	err := s.child(c, on, func() {
		s.member(func() error {
			var v T
			err := ErrAbandoned
			defer func() { c.end(v, err) }()
			if done := suspend.Err(c.ctx); done != nil {
				err = done
			} else {
				v, err = f(c.ctx)
			}
			if c.stopped.Load() && (errors.Is(err, c.ctx.Err()) || errors.Is(err, context.Cause(c.ctx))) {
				return nil
			}
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	started = true
	return c, nil
}

// Cancel cancels the context of the child, with this cause, and no other child. A cancellation error of the child is no failure of its
// scope then. A child that waits in a Limit never runs. Cancel does not wait: Await does.
func (c *Child[T]) Cancel(cause error) {
	c.stopped.Store(true)
	c.cancel(cause)
}

func (c *Child[T]) end(v T, err error) {
	c.results.Resolve(v, err)
	c.cancel(nil) // the scope keeps it no longer
}

func (c *Child[T]) context() context.Context { return c.ctx }

// withdrawn ends a child that has not started.
func (c *Child[T]) withdrawn() {
	if c.stopped.Load() {
		defer c.s.leave()
	} else {
		defer c.s.withdrawn()
	}
	var none T
	c.end(none, suspend.Err(c.ctx))
}
