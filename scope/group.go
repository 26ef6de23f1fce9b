package scope

import (
	"context"
	"errors"
	"sync"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/abandoned"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/internal/shrinking"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// A Policy decides whether the failure of a child ends its siblings.
type Policy int

const (
	FirstError Policy = iota // a failure cancels all children, as in Run
	Collect                  // a failure cancels no child, and all failures are reported at the end
)

// A Group is a Scope that is not bound to a function call. A service opens a Group in its constructor and closes it in its
// Close method. An open Group does not end, even while it has no children. To limit the number of live children, start all
// of them on the same Limit.
//
//	func newServer(ctx context.Context) *server {
//		s := &server{tasks: scope.Open(ctx, scope.FirstError)}
//		s.tasks.Go(nil, s.serve)
//		return s
//	}
//
//	func (s *server) Close() error { return s.tasks.Close() }
//
// A method of a service that may be called after Close uses Start, and looks at the Child, which then fails with an error that is
// suspend.ErrEnded.
// A caller that drops the Child does not learn that the function never ran. Go panics then.
//
// Use Run where a function can wait for the children.
type Group struct {
	*Scope
	// The Group itself is a member until it is closed or shut down. -E> is the first Close or Shutdown.
	//
	//	open    -E> closing   the Group is no longer a member of itself
	//	closing -E> closed    all members have ended, and the OnRelease functions have been called
	closing atomicx.Bool
	closer  atomicx.Int64 // the id of the goroutine of the first Close or Shutdown
	closed  promise.Promise[struct{}]
}

// Open returns a Group whose children get a context that ends when ctx ends. If ctx has already ended, no child runs. The
// caller must call Close or Shutdown when it no longer needs the Group. With Collect, the Group keeps every failure until
// then, but only one cancellation error for all children that never run because the Group is cancelled. Open panics if the
// policy is unknown.
func Open(ctx context.Context, policy Policy) *Group {
	if policy != FirstError && policy != Collect {
		panic("scope: unknown Policy")
	}
	g := &Group{Scope: open(ctx)}
	g.collects = policy == Collect
	g.running = &running{}
	return g
}

// Close cancels the children, waits until they have ended, and calls the functions registered with OnRelease. It returns
// the first failure, or, with Collect, all failures joined. As after Cancel(nil), a cancellation error that Close causes is
// not a failure. Later calls wait until the Group is closed and return the same error. A Close called by an OnRelease
// function would wait for itself, so it returns the failures so far instead. Close suspends its caller. This wait cannot be
// cancelled. Close panics, and changes nothing, if its caller is a child of g, because it would wait for itself; such a child
// can call Cancel.
func (g *Group) Close() error {
	g.checkCaller()
	g.Cancel(nil)
	return g.shutdown(context.Background())
}

// Shutdown closes g like Close, but does not cancel the children: it waits until they have ended. Children may still start
// children. If ctx ends first, Shutdown cancels the children, and the cancellation error is a failure. Like Close, it panics if
// its caller is a child of g.
func (g *Group) Shutdown(ctx context.Context) error {
	g.checkCaller()
	preempt.Looks(preempt.Members) // the children may end before ctx does
	return g.shutdown(ctx)
}

func (g *Group) checkCaller() {
	_ = suspend.Self() // Self panics where suspending is forbidden
	if g.running.hasCaller() {
		panic("scope: Close or Shutdown of a Group called by its own child")
	}
}

// A running holds the goroutines that run the children of a Group, with their numbers of children: a child may run another one,
// as a scheduler on its goroutine does. The lock is a plain sync.Mutex, because each goroutine reads only its own entry.
type running struct {
	mu  sync.Mutex
	ids shrinking.Map[int64, int]
}

// enter adds a child of the calling goroutine, until leave is called there.
func (r *running) enter() (leave func()) {
	id := gid.Get()
	r.add(id, 1)
	return func() { r.add(id, -1) }
}

func (r *running) add(id int64, by int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := r.ids.Get(id) + by; n > 0 {
		r.ids.Set(id, n)
	} else {
		r.ids.Delete(id)
	}
}

// hasCaller reports whether the calling goroutine runs a child.
func (r *running) hasCaller() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ids.Get(gid.Get()) > 0
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
		g.removeMember()
	}
	asked := false
	defer func() {
		if !asked { // a method of ctx has panicked, or ctx is nil
			g.fail(errAbandoned)
		}
	}()
	_, late := g.over.Await(ctx)
	asked = true
	if _, over, _ := g.over.Try(); !over {
		g.fail(late)
	}
	switch {
	case first:
	case g.closer.Load() == gid.Get(): // an OnRelease function calls Close
		err = g.failure()
	default:
		_, err = g.closed.Await(context.Background())
	}
	return err
}

// A Parent is a *Scope or a *Group.
type Parent interface{ scope() *Scope }

func (s *Scope) scope() *Scope { return s }

// A Child is a handle for a child of Start. Its Future holds the result and the error of the function. If the
// function did not return, the error is one that is suspend.ErrAbandoned. If the function never ran, the error is the cancellation error,
// one that is suspend.ErrEnded, or the error with which the scheduler has refused the function.
type Child[T any] struct {
	promise.Future[T]
	results promise.Promise[T]

	s       *Scope
	ctx     context.Context
	cancel  func(cause error)
	stopped atomicx.Bool // Cancel was called
}

// Start starts f as a child of a Scope or a Group, as Go does, and returns a handle for the child and its result. Start
// never suspends. An error of the child is also a failure of the scope, even if f never runs. But if the scope has ended,
// the Child fails with an error that is suspend.ErrEnded, and Start does not panic. If on refuses f, Start cancels the scope, as Go
// does: hold no lock that a function registered with its context takes. Start panics if f is nil.
func Start[T any](of Parent, on suspend.Spawner, f func(ctx context.Context) (T, error)) *Child[T] {
	check(f != nil)
	c := &Child[T]{s: of.scope()}
	c.Future = &c.results
	c.ctx, c.cancel = cancel.New(c.s.ctx)
	panicked := true
	defer func() {
		if panicked {
			c.cancel(nil)
		}
	}()
	if !c.s.child(c, on, func() { c.s.member(func() error { return c.run(f) }) }, c.never) {
		c.fail(errEnded)
	}
	panicked = false
	return c
}

// run calls f and returns the failure of the scope.
func (c *Child[T]) run(f func(ctx context.Context) (T, error)) (err error) {
	if err = suspend.Err(c.ctx); err != nil {
		c.fail(err)
		if !c.stopped.Load() {
			c.s.never(err, true)
		}
		return nil
	}
	var v T
	abandoned.Watch(errAbandoned, func() { v, err = f(c.ctx) }, func(err error) { c.resolve(v, err) })
	c.resolve(v, err)
	if c.stopped.Load() && (errors.Is(err, c.ctx.Err()) || errors.Is(err, context.Cause(c.ctx))) {
		return nil
	}
	return err
}

// never records the failure of a child that never runs.
func (c *Child[T]) never(err error, cancelled bool) {
	c.fail(err)
	c.s.never(err, cancelled)
}

// Cancel cancels the context of this child only, with the given cause. A cancellation error of the child is then not a
// failure of its scope. A child that still waits in a Limit never runs. Cancel does not wait for the child to end; use
// Await.
func (c *Child[T]) Cancel(cause error) {
	c.stopped.Store(true)
	c.cancel(cause)
}

func (c *Child[T]) resolve(v T, err error) {
	c.results.Resolve(v, err)
	c.cancel(nil) // detaches c.ctx from the scope's context
}

func (c *Child[T]) fail(err error) {
	var none T
	c.resolve(none, err)
}

func (c *Child[T]) context() context.Context { return c.ctx }

// withdrawn ends a child that never starts.
func (c *Child[T]) withdrawn() {
	if c.stopped.Load() {
		defer c.s.removeMember()
	} else {
		defer c.s.withdrawn()
	}
	err := suspend.Err(c.ctx)
	if err == nil {
		err = errAbandoned // its scheduler has dropped it
	}
	c.fail(err)
}
