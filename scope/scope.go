// Package scope provides structured concurrency across schedulers: a call that starts tasks anywhere, and returns
// when all of them have ended.
package scope

import (
	"context"
	"errors"
	"fmt"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// ErrEnded is the error of starting a child in a scope that has ended. It is a suspend.ErrClosed.
var ErrEnded = fmt.Errorf("scope: ended: %w", suspend.ErrClosed)

// ErrAbandoned is the error of a scope one of whose functions did not return: it panicked, where its scheduler put up
// with that, or ended its task with runtime.Goexit.
var ErrAbandoned = errors.New("scope: a function of it did not return")

// A Scope is the extent of one Run: the tasks that were started in it, its children, of whatever schedulers, and what
// is to be released after them. All methods may be called from any goroutine, and none suspends.
//
// The members are the body and the children that have not ended. -G> is a Go, -M> a member that ends.
//
//	n      -G> n+1      n > 0: who is not a member may start one too, as long as there are some
//	n      -M> n-1
//	1      -M> ended    for good; this member fills over
//	ended  -W> released Run calls what is to be released
//
// Invariant: no child runs once members is 0, and none can be started.
// Debt: who takes members to 0 owes Run its wake-up.
type Scope struct {
	ctx     context.Context
	cancel  func(cause error)
	members atomicx.Int64
	over    promise.Promise[struct{}] // filled when members gets to 0

	mu       atomicx.Mutex
	err      error    // the first failure; set once
	enough   bool     // Cancel(nil) came before any other cancellation
	releases []func() // the last is the next to be called
	released bool     // there will be no more
}

// Run calls body with a new scope, waits until body and all children have ended, calls what was left with OnRelease,
// and returns the first error that body or a child returned, or that Cancel was given. Nothing that was started in
// the scope outlives it.
//
// Body and children get a context that is done when ctx is, and as soon as one of them fails: then with that error as
// the cause. A failure is an error, after Cancel(nil) one that is not the cancellation's itself in the sense of
// errors.Is; or ErrAbandoned. So if ctx is done first, Run returns an error only if somebody has been
// stopped by that. A panic of body, or a runtime.Goexit, cancels the scope, and goes on when everything has ended and
// is released; one of a child is as in any task of its scheduler, and the scope is cancelled with ErrAbandoned.
//
// If ctx is done already, Run returns the error of the cancellation and body does not run. Otherwise the end of Run
// suspends the caller for as long as there are children, and cannot be cancelled: what can is what the children do.
// What the children have done synchronizes before what was left with OnRelease, and before the return of Run. A nil body
// panics.
func Run(ctx context.Context, body func(ctx context.Context, s *Scope) error) (err error) {
	if body == nil {
		panic("scope: Run of a nil function")
	}
	if err := suspend.Err(ctx); err != nil {
		return err
	}
	_ = suspend.Self() // panics where suspending is forbidden, before anything is started
	s := new(Scope)
	s.ctx, s.cancel = cancel.New(ctx)
	s.members.Store(1)
	defer func() {
		_, _ = s.over.Await(context.Background())
		defer func() {
			s.release()
			s.mu.Lock()
			err = s.err
			s.mu.Unlock()
		}()
		s.cancel(ErrEnded)
	}()
	s.member(func() error { return body(s.ctx, s) })
	return nil
}

// Go starts f on a scheduler, as a child of s. It returns on's error if on refuses; the error of the cancellation if s
// has been cancelled, and ErrEnded if s has ended: then f never runs. A child that was started runs, though its
// context may be done by then. Children may start children. A nil Spawner or a nil function panics.
func (s *Scope) Go(on suspend.Spawner, f func(ctx context.Context) error) error {
	check(on, f != nil)
	if s.members.Load() > 0 {
		if err := suspend.Err(s.ctx); err != nil {
			return err
		}
	}
	return s.start(on, func() {
		s.member(func() error { return f(s.ctx) })
	})
}

// On returns a Spawner that starts children of s on a scheduler. As with any Spawner, and other than with s.Go, a
// cancellation does not stop it; when s has ended, it refuses with ErrEnded. A nil Spawner panics.
func (s *Scope) On(on suspend.Spawner) suspend.Spawner {
	check(on, true)
	return &spawner{s, on}
}

// check panics for what would fail later, on the scheduler and far from the mistake.
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

func (o *spawner) Go(f func()) error {
	check(o.on, f != nil)
	return o.s.start(o.on, func() {
		o.s.member(func() error {
			f()
			return nil
		})
	})
}

// Unwrap says that what on offers beside Go is offered here as well, see suspend.As.
func (o *spawner) Unwrap() suspend.Spawner { return o.on }

// Cancel cancels the scope. A cause is a failure: if it is the first, Run returns it. Cancel(nil) says that enough has
// been done: Run returns nil, unless something fails all the same. Of what is cancelled already, nothing changes.
func (s *Scope) Cancel(cause error) {
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

// OnRelease has f called once, by the caller of Run, when all children have ended and before Run returns, also if that
// is by a panic. What was left last is called first. It is not cancelled: f may suspend, with a context of its own, as
// that of the scope is done by then. If f panics, the others are called all the same. f may call OnRelease. Once the
// scope has ended and everything is released, OnRelease panics, and so it does if f is nil.
func (s *Scope) OnRelease(f func()) {
	if f == nil {
		panic("scope: OnRelease of a nil function")
	}
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

// Hold counts something that waits without a task as a child, until release is called; see suspend.Holder. Run waits for
// it. When s has ended, Hold returns ErrEnded.
func (s *Scope) Hold() (release func(), err error) {
	if !s.enter() {
		return nil, ErrEnded
	}
	return s.leave, nil
}

// Hold holds the scope and, if that can be held, the scheduler.
func (o *spawner) Hold() (release func(), err error) {
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

// enter counts one more member, unless s has ended.
func (s *Scope) enter() bool {
	for {
		n := s.members.Load()
		if n == 0 {
			return false
		}
		if s.members.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (s *Scope) start(on suspend.Spawner, f func()) error {
	if !s.enter() {
		return ErrEnded
	}
	started := false
	defer func() {
		if !started { // refused, or the spawner has panicked
			s.leave()
		}
	}()
	err := on.Go(f)
	started = err == nil
	return err
}

// member runs the body or a child.
func (s *Scope) member(f func() error) {
	err := ErrAbandoned
	defer s.leave() // also if what the cancellation calls panics
	defer func() {
		if err != nil {
			s.fail(err)
		}
	}()
	err = f()
}

func (s *Scope) leave() {
	if s.members.Add(-1) == 0 {
		_ = s.over.Fill(struct{}{})
	}
}

func (s *Scope) fail(err error) {
	stopped := s.ctx.Err() != nil && (errors.Is(err, s.ctx.Err()) || errors.Is(err, context.Cause(s.ctx)))
	s.mu.Lock()
	if s.err == nil && !(s.enough && stopped) {
		s.err = err
	}
	s.mu.Unlock()
	s.cancel(err)
}

func (s *Scope) release() {
	returned := false
	defer func() {
		if !returned { // one of them has panicked
			s.release()
		}
	}()
	for f := s.nextRelease(); f != nil; f = s.nextRelease() {
		f()
	}
	returned = true
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
