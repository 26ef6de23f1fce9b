// Package scope provides structured concurrency across schedulers: a call starts tasks, each on any scheduler, and returns
// after all of them have ended.
//
//	err := scope.Run(ctx, func(ctx context.Context, s *scope.Scope) error {
//		s.Go(pool, compute) // a task of the pool
//		s.Go(nil, listen)   // a goroutine
//		return nil
//	})
//
// No child outlives its Run. The first failure cancels the context of all children and is the error of Run. The
// cancellation errors that follow are not reported. A child that cannot start is a failure, too.
//
// A Group is a scope for a service, which opens it in its constructor and closes it in its Close method. Start returns a
// handle for a child, to cancel only this child, or to wait for its result.
//
// Map calls a function for each element of a slice, Stream for each value of a sequence, First returns the first success,
// and Limit bounds the number of live tasks. Use errgroup if all children are goroutines and no other feature of this package
// is needed. Use a promise for a task that may outlive its caller.
package scope

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/abandoned"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/internal/ledger"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

// errEnded is the error of a Child that was started after the end of its scope, whose function does not run, and of the Go and
// the Hold of a Spawner from On after the end.
var errEnded = outcome.Named("scope: ended", suspend.ErrEnded, suspend.ErrClosed)

// errAbandoned is the error of a scope in which a function did not return. The function called runtime.Goexit, or it
// panicked and its scheduler handled the panic. After a panic, the error also wraps a *suspend.PanicError.
var errAbandoned = outcome.Named("scope: a child or the body did not return", suspend.ErrAbandoned)

// A Scope holds the children of one Run, each a task on any scheduler, and the functions to be called after the children
// have ended. All methods may be called from any goroutine, and none suspends.
type Scope struct {
	// The members are the body and the children that have not ended. -G> is a Go, -M> a member that ends, -W> the end of
	// Run's wait.
	//
	//	n      -G> n+1      if n > 0: any goroutine may start a child while there are members
	//	n      -M> n-1
	//	1      -M> ended    this member fills s.over, and no child can be started
	//	ended  -W> released Run calls the OnRelease functions
	//
	// Invariant: when s.members is 0, no child runs and none can be started.
	// Debt: the member that decrements s.members to 0 must fill s.over; otherwise Run would wait for ever.

	ctx     context.Context
	cancel  func(cause error)
	members atomicx.Int64
	over    promise.Promise[struct{}] // filled when the last member has ended

	running *running // the goroutines of the children of a Group; nil in a Run

	mu       atomicx.Mutex
	collects bool               // set before the first child
	errs     []error            // the first failure, or all failures with Collect
	enough   bool               // Cancel(nil) was the first cancellation
	known    bool               // the reason of the cancellation is in errs
	releases dlist.List[func()] // called in reverse order
	released bool               // every release function has been called
}

// Run calls body with a new scope, waits until body and all children have ended, and calls the functions registered with
// OnRelease. It returns the first failure: an error of body or of a child, or the cause of a Cancel.
//
// The context of body and of the children ends when ctx ends, or when body or a child fails; its cause is then that error.
// An error of body or of a child is a failure, even if it is a cancellation error. After Cancel(nil), errors that match
// this cancellation (in the sense of errors.Is) are not failures. A function that does not return is a failure, with
// an error that is suspend.ErrAbandoned. If ctx ends, Run therefore returns an error only if this makes body or a child fail.
//
// If body panics or calls runtime.Goexit, the scope is cancelled. The panic or exit continues after all children have ended
// and the OnRelease functions have been called. If a child panics, its scheduler handles the panic as in any task, and the
// scope is cancelled with an error that is suspend.ErrAbandoned and wraps a *suspend.PanicError.
//
// If ctx has already ended, Run returns the cancellation error and does not call body. Otherwise, after body has returned,
// Run suspends the caller while there are children. This wait cannot be cancelled, but the children can. The end of each
// child synchronizes before the calls of the OnRelease functions and before the return of Run. Run panics if body is nil.
func Run(ctx context.Context, body func(ctx context.Context, s *Scope) error) (err error) {
	if body == nil {
		panic("scope: Run with a nil function")
	}
	suspend.Preemptible()
	if err := suspend.Err(ctx); err != nil {
		return err
	}
	_ = suspend.Self() // Self panics where suspending is forbidden, before a child is started
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
	if ledger.On() {
		ledger.Opens(s)
	}
	return s
}

// finish waits until all members have ended, calls the OnRelease functions, and stores the failure in *err.
func (s *Scope) finish(err *error) {
	if ledger.On() {
		defer ledger.Ends(s)
	}
	ended := false
	defer func() {
		if !ended { // runtime.Goexit has ended the wait, as in a simulated crash (simulation)
			s.cancel(errAbandoned)
			_, _ = s.over.Await(context.Background())
		}
		defer func() {
			defer func() { *err = s.failure() }() // runs even if an OnRelease function panics
			s.callReleases()
		}()
		s.cancel(errEnded)
	}()
	_, _ = s.over.Await(context.Background())
	ended = true
}

// Go uses on to start f as a child of s, and never suspends. If on is nil, f runs on a plain goroutine. Children may start
// children. A started child runs even if its context has ended.
//
// A child that never runs is a failure of s, so that Run returns the reason if no other failure came first:
//   - If on refuses f, the failure wraps the error of on.Go, and s is cancelled as after any failure.
//   - If s is cancelled before the call, or while f is queued in a Limit, the failure is the cancellation error. After
//     Cancel(nil), this error is not a failure.
//
// A caller that can do without f uses the Spawner from On. Its Go returns the error of on. If on refuses f, this call
// cancels s, and so calls the functions registered with its context, unless s is a Group that collects: hold no lock that
// one of them takes.
//
// Go panics if f is nil. Go also panics if s has ended, because no Run or Close would return the failure. s has ended when
// the OnRelease functions are called. A caller that is not a child of s and may come after the end uses Start or On. If on.Go
// panics and the caller recovers, f is neither a child of s nor a failure.
func (s *Scope) Go(on suspend.Spawner, f func(ctx context.Context) error) {
	check(f != nil)
	if !s.child(s, on, func() { s.member(func() error { return f(s.ctx) }) }, s.never) {
		panic("scope: Go after the end of the scope")
	}
}

// child starts a task that calls run, which must call s.member or s.removeMember. If s is cancelled, or on refuses the task, child
// calls never with the error, before s can end. If s has ended, child does nothing and returns false.
func (s *Scope) child(of origin, on suspend.Spawner, run func(), never func(err error, cancelled bool)) bool {
	suspend.Point()
	if !s.addMember() {
		return false
	}
	started := false
	defer func() {
		if !started { // also if on has panicked
			s.removeMember()
		}
	}()
	err := suspend.Err(s.ctx)
	cancelled := err != nil
	if !cancelled {
		if err = s.start(of, cmp.Or(on, suspend.Goroutines), run); err != nil {
			err = fmt.Errorf("scope: a child was refused: %w", err)
		}
	}
	if started = err == nil; !started {
		never(err, cancelled)
	}
	return true
}

// check panics if a function is nil. Otherwise the failure would occur later, in a task, far from the mistake.
func check(f bool) {
	if !f {
		panic("scope: nil function")
	}
}

// Cancel cancels the scope. A non-nil cause is a failure, and Run returns it if it is the first. After Cancel(nil), Run
// returns nil unless body or a child fails for another reason. Cancel(nil) has no effect on a scope that is already
// cancelled.
func (s *Scope) Cancel(cause error) {
	suspend.Point()
	if cause != nil {
		s.fail(cause)
		return
	}
	runs := s.ctx.Err() == nil
	s.mu.Lock()
	s.enough = s.enough || runs
	s.mu.Unlock()
	s.cancel(nil)
}

// addMember increments s.members and returns true, unless s has ended. The caller must have called suspend.Point.
func (s *Scope) addMember() bool {
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

// An origin is the owner of a function that a Spawner may withdraw: a Scope, a Child or a guest. When its context ends, the function
// is withdrawn if it is still queued.
type origin interface {
	context() context.Context
	withdrawn() // called if the function will never run, because the context has ended, or because its scheduler has dropped it
}

// start starts f for a member that the caller has added. If start returns an error or panics, the caller must remove the
// member. With a nil origin, the end of a context does not withdraw f.
func (s *Scope) start(of origin, on suspend.Spawner, f func()) error {
	if of == nil {
		return abandoned.Go(on, f, s.withdrawn)
	}
	if w, ok := on.(sched.Withdrawer); ok {
		return w.GoUntil(of.context(), f, of.withdrawn)
	}
	return on.Go(f)
}

func (s *Scope) context() context.Context { return s.ctx }

// withdrawn ends a child that never starts.
func (s *Scope) withdrawn() {
	defer s.removeMember()
	if err := suspend.Err(s.ctx); err != nil {
		s.never(err, true)
	} else {
		s.never(errAbandoned, false)
	}
}

// never records the failure of a child that never runs: s is cancelled, or its scheduler has refused or dropped the child. One
// cancellation error stands for all such children, however many a Group has. If s is cancelled, never does not call s.cancel, which would
// call functions registered with s.ctx in a foreign task.
func (s *Scope) never(err error, cancelled bool) {
	if !cancelled {
		s.memberFailed(err)
		return
	}
	s.mu.Lock()
	known := s.known
	s.known = true
	s.mu.Unlock()
	if !known {
		s.note(err)
	}
}

// member calls f, which is the body or a child, and records its failure.
func (s *Scope) member(f func() error) {
	defer s.removeMember() // runs even if the cancellation calls a function that panics
	if ledger.On() {
		defer ledger.Joins(s)() // a Close or Run waits for each member
	}
	if s.running != nil {
		defer s.running.enter()()
	}
	var err error
	abandoned.Watch(errAbandoned, func() { err = f() }, s.memberFailed)
	if err != nil {
		s.memberFailed(err)
	}
}

// memberFailed records the failure of a child or of the body.
func (s *Scope) memberFailed(err error) {
	if s.collects {
		s.note(err)
	} else {
		s.fail(err)
	}
}

func (s *Scope) removeMember() {
	preempt.Releases(preempt.Members)
	if s.members.Add(-1) == 0 {
		s.over.Fill(struct{}{})
	}
}

func (s *Scope) fail(err error) {
	s.note(err)
	runs := s.ctx.Err() == nil // under no lock, because it is a point at which the model checker runs another task
	s.mu.Lock()
	s.known = s.known || runs
	s.mu.Unlock()
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
