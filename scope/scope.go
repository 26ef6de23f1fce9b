// Package scope provides structured concurrency across schedulers: a call that starts tasks anywhere, and returns when all of them
// have ended.
//
//	err := scope.Run(ctx, func(ctx context.Context, s *scope.Scope) error {
//		if err := s.Go(pool, compute); err != nil { // a task of the pool
//			return err
//		}
//		return s.Go(suspend.Goroutines, listen) // a goroutine
//	})
//
// No child outlives its Run. The first failure cancels the context of all others and is the error of Run. The cancellations that it
// causes are not reported as failures.
//
// A Group is a scope for a service: it begins in a constructor and ends in Close. Start returns a handle of the child, to cancel it alone,
// to wait for it, and for its result.
//
// Map calls a function for each element of a slice, Stream for each value of a sequence, First returns the first
// success, and Limit bounds the number of live tasks. idle.Group reports when all its tasks wait. Use errgroup if all
// children are goroutines and nothing else here is needed. Use a promise for a task that may outlive its caller.
package scope

import (
	"context"
	"errors"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// ErrEnded is the error of starting a child in a scope that has ended. It is a suspend.ErrEnded and a suspend.ErrClosed. The child did not run.
var ErrEnded = outcome.Named("scope: ended", suspend.ErrEnded, suspend.ErrClosed)

// ErrAbandoned is the error of a scope in which a function did not return. It ended its task with runtime.Goexit, or it panicked and
// its scheduler went on.
var ErrAbandoned = outcome.Named("scope: a function of it did not return", suspend.ErrAbandoned)

// A Scope is the extent of one Run: its children, which are the tasks started in it on any schedulers, and the functions to be called
// after them. All methods may be called from any goroutine, and none suspends.
type Scope struct {
	// The members are the body and the children that have not ended. -G> is a Go, -M> a member that ends.
	//
	//	n      -G> n+1      n > 0: another task may start a child too, as long as there are members
	//	n      -M> n-1
	//	1      -M> ended    for good; this member fills over
	//	ended  -W> released Run calls the functions of OnRelease
	//
	// Invariant: when members is 0, no child runs and none can be started.
	// Debt: the member that takes members to 0 must fill over, or Run would wait without end.

	ctx     context.Context
	cancel  func(cause error)
	members atomicx.Int64
	over    promise.Promise[struct{}] // filled when members gets to 0

	mu       atomicx.Mutex
	collects bool     // set before the first child
	errs     []error  // the first failure, or all of them
	enough   bool     // Cancel(nil) came before any other cancellation
	releases []func() // the last is the next to be called
	released bool     // there will be no more
}

// Run calls body with a new scope. It waits until body and all children have ended, and calls the functions of OnRelease. Then it returns
// the first failure of body or a child, or the cause of Cancel.
//
// Body and children get a context that ends with ctx, or when body or a child fails, with that error as its cause. An
// error of body or a child is a failure, also if it is a cancellation error. After Cancel(nil), the cancellation's own
// error (in the sense of errors.Is) is none. ErrAbandoned is a failure. So if ctx is done first, Run returns an error
// only if body or a child was stopped by it.
//
// A panic of body, or a runtime.Goexit, cancels the scope, and goes on when everything has ended and is released. A panic of a child is
// treated as in any task of its scheduler, and cancels the scope with ErrAbandoned.
//
// If ctx is done already, Run returns the cancellation error and body does not run. Otherwise the end of Run suspends the caller as long
// as there are children. This wait cannot be cancelled, but the children can. The children synchronize before the functions of
// OnRelease, and before the return of Run. A nil body panics.
func Run(ctx context.Context, body func(ctx context.Context, s *Scope) error) (err error) {
	if body == nil {
		panic("scope: Run of a nil function")
	}
	suspend.Preemptible()
	if err := suspend.Err(ctx); err != nil {
		return err
	}
	_ = suspend.Self() // panics where suspending is forbidden, before anything is started
	s := open(ctx)
	defer s.finish(&err)
	s.member(func() error { return body(s.ctx, s) })
	return nil
}

// open returns a scope with one member.
func open(ctx context.Context) *Scope {
	s := new(Scope)
	s.ctx, s.cancel = cancel.New(ctx)
	s.members.Store(1)
	return s
}

// finish waits for the end of all members, calls the functions of OnRelease, and leaves the failure in err.
func (s *Scope) finish(err *error) {
	ended := false
	defer func() {
		if !ended { // runtime.Goexit has ended the wait, as in a crash of adapters/simulation
			s.cancel(ErrAbandoned)
			_, _ = s.over.Await(context.Background())
		}
		defer func() {
			defer func() { *err = s.failure() }() // it runs even if a hook panics
			s.release()
		}()
		s.cancel(ErrEnded)
	}()
	_, _ = s.over.Await(context.Background())
	ended = true
}

// Go starts f on a scheduler, as a child of s, and never suspends. Children may start children. A started child runs, even if its context
// is done by then. A child that still waits in a Limit has not started: it never runs, and counts as stopped by the cancellation. A nil
// Spawner or a nil function panics.
//
// If Go returns an error, f never runs. Go returns the error of on if on refuses, the cancellation error if s was
// cancelled, and ErrEnded if s has ended. In the body and in children, return the error: if a failure has cancelled s,
// Run still returns that failure.
func (s *Scope) Go(on suspend.Spawner, f func(ctx context.Context) error) error {
	check(on, f != nil)
	return s.child(s, on, func() {
		s.member(func() error { return f(s.ctx) })
	})
}

// child starts a task that ends with member or leave, unless s is cancelled.
func (s *Scope) child(of origin, on suspend.Spawner, run func()) error {
	suspend.Point()
	if s.members.Load() > 0 {
		if err := suspend.Err(s.ctx); err != nil {
			return err
		}
	}
	return s.start(of, on, run)
}

// On returns a Spawner that starts children of s on a scheduler. A cancellation of s does not stop it, unlike s.Go. When s has ended, it
// refuses with ErrEnded. A nil Spawner panics.
func (s *Scope) On(on suspend.Spawner) suspend.Spawner {
	check(on, true)
	return &spawner{s, on}
}

// check panics for an argument that would fail later, on the scheduler and far from the mistake.
func check(on suspend.Spawner, f bool) {
	switch {
	case on == nil:
		panic("scope: nil Spawner")
	case !f:
		panic("scope: nil function")
	}
}

type spawner struct {
	s  *Scope
	on suspend.Spawner
}

func (o *spawner) Go(f func()) error { return o.goFor(nil, f) }

func (o *spawner) goFor(of origin, f func()) error {
	check(o.on, f != nil)
	suspend.Point()
	if of != nil {
		of = &entered{of, o.s}
	}
	return o.s.start(of, o.on, func() {
		o.s.member(func() error {
			f()
			return nil
		})
	})
}

// An entered function waits in a Limit and is a member of s, too, so a withdrawal must take it out of s.
type entered struct {
	origin
	s *Scope
}

func (e *entered) withdrawn() {
	e.s.leave()
	e.origin.withdrawn()
}

// Unwrap offers the capabilities of on, see suspend.As.
func (o *spawner) Unwrap() suspend.Spawner { return o.on }

// Cancel cancels the scope. A cause is a failure: if it is the first, Run returns it. Cancel(nil) says that enough is done: Run returns
// nil, unless a child fails for another reason. It does not change a scope that is cancelled already.
func (s *Scope) Cancel(cause error) {
	suspend.Point()
	if cause != nil {
		s.fail(cause)
		return
	}
	s.mu.Lock()
	if s.ctx.Err() == nil {
		s.enough = true
	}
	s.mu.Unlock()
	s.cancel(nil)
}

// OnRelease registers f. The caller of Run calls it once, after the end of all children and before Run returns or
// panics. The last registered function is called first. f may suspend, but with another context, as the scope's context
// is done by then. If f panics, the rest is called nevertheless. f may call OnRelease. A nil f panics, and so does
// OnRelease after the end of the scope.
func (s *Scope) OnRelease(f func()) {
	if f == nil {
		panic("scope: OnRelease of a nil function")
	}
	suspend.Point()
	s.mu.Lock()
	ok := !s.released
	if ok {
		s.releases = append(s.releases, f)
	}
	s.mu.Unlock()
	if !ok {
		panic("scope: OnRelease after the end of the scope")
	}
}

// Hold counts a wait without a task as a child, until release is called; see suspend.Holder. Run waits for it. When s has ended, Hold
// returns ErrEnded.
func (s *Scope) Hold() (release func(), err error) {
	suspend.Point()
	if !s.enter() {
		return nil, ErrEnded
	}
	return s.leave, nil
}

// Hold holds the scope, and the scheduler if it is a Holder.
func (o *spawner) Hold() (release func(), err error) {
	suspend.Point()
	if !o.s.enter() {
		return nil, ErrEnded
	}
	h, ok := suspend.As[suspend.Holder](o.on)
	if !ok {
		return o.s.leave, nil
	}
	inner, err := h.Hold()
	if err != nil {
		o.s.leave()
		return nil, err
	}
	return func() { inner(); o.s.leave() }, nil
}

// enter counts one more member, unless s has ended. Its caller has called suspend.Point.
func (s *Scope) enter() bool {
	for {
		n := s.members.Load()
		if n == 0 {
			preempt.Looks(preempt.Members)
			return false
		}
		if s.members.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// start starts f as a member. A nil origin does not withdraw it.
func (s *Scope) start(of origin, on suspend.Spawner, f func()) error {
	if !s.enter() {
		return ErrEnded
	}
	started := false
	defer func() {
		if !started { // refused, or the spawner has panicked
			s.leave()
		}
	}()
	err := goFor(of, on, f)
	started = err == nil
	return err
}

func (s *Scope) context() context.Context { return s.ctx }

// withdrawn ends a child that has not started.
func (s *Scope) withdrawn() {
	defer s.leave()
	s.note(suspend.Err(s.ctx)) // no cancel: the context has ended, and its functions must not run here, in a foreign task
}

// member runs the body or a child.
func (s *Scope) member(f func() error) {
	err := ErrAbandoned
	defer s.leave() // it runs even if a function that the cancellation calls panics
	defer func() {
		switch {
		case err == nil:
		case s.collects:
			s.note(err)
		default:
			s.fail(err)
		}
	}()
	err = f()
}

func (s *Scope) leave() {
	preempt.Releases(preempt.Members)
	if s.members.Add(-1) == 0 {
		s.over.Fill(struct{}{})
	}
}

func (s *Scope) fail(err error) {
	s.note(err)
	s.cancel(err)
}

func (s *Scope) note(err error) {
	stopped := s.ctx.Err() != nil && (errors.Is(err, s.ctx.Err()) || errors.Is(err, context.Cause(s.ctx)))
	s.mu.Lock()
	switch {
	case s.enough && stopped:
	case s.errs == nil || s.collects:
		s.errs = append(s.errs, err)
	}
	s.mu.Unlock()
}

func (s *Scope) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.errs) == 1 {
		return s.errs[0]
	}
	return errors.Join(s.errs...)
}

func (s *Scope) release() {
	outcome.Each(func() (more bool) {
		f := s.nextRelease()
		if f != nil {
			f()
		}
		return f != nil
	})
}

func (s *Scope) nextRelease() (f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.releases) - 1
	if last < 0 {
		s.released = true
		return nil
	}
	f, s.releases[last] = s.releases[last], nil
	s.releases = s.releases[:last]
	return f
}
