// Package lazy provides a value that is computed by the first task that forces it. Tasks of any scheduler can share a value.
//
// sync.OnceValues cannot be cancelled, blocks the threads of its waiters, and deadlocks if its function needs its own value. A Lazy passes
// a context to its function, and each waiter has its own context:
//
//	config := lazy.New(func(ctx context.Context) (*Config, error) { return load(ctx) }, lazy.Restart)
//	...
//	c, err := config.Force(ctx)
//
// One task at a time runs the function, and it runs once, unless it fails: the Mode decides whether an error is kept, or the function runs
// again. A Force that would wait for itself returns ErrRecursive. For many values with keys, each loaded once, see keyed.Cache.
//
// Use sync.OnceValues if the function is quick or cannot be cancelled, and a promise if the work starts before a task needs the value.
package lazy

import (
	"context"
	"errors"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/ledger"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend"
)

// ErrRecursive is the error of a Force that would wait for itself. It means that the functions of some Lazy values need each other's
// results. Break this cycle.
var ErrRecursive = errors.New("lazy: recursive")

// errAbandoned is the error of a lazy value whose function ended its task with runtime.Goexit. The Lazy keeps this error, unless its mode
// is Retry. To try again, make a new Lazy.
var errAbandoned = outcome.Named("lazy: the function did not return", suspend.ErrAbandoned)

// A Mode decides which errors are kept, and what happens if the context of the Force that runs the function is cancelled.
//
// Under Retry, a Force that waits for a run shares its error, as in Go's singleflight and in the loading caches of Guava and Caffeine. In
// Kotlin's lazy and tokio's OnceCell each waiter would run the function itself, one after another, so that the last of n waiters would wait
// for n timeouts of the same server.
type Mode uint8

const (
	Restart Mode = iota // the error of a cancelled run is not kept: the first waiting Force, or else the next one, runs the function again
	Record              // every error is kept, as in sync.OnceValues
	Protect             // every error is kept; the function's context is never cancelled, because it comes from context.WithoutCancel
	Retry               // no error is kept: the waiting Forces get it, the next one runs the function again; a cancelled run is as in Restart
)

// A Lazy holds a function and, once the function has run, its results. New makes a Lazy, which must not be copied. Forcing a computed value
// takes no lock.
type Lazy[T any] struct {
	// -F> is a Force, -R> the Force that runs the function, under no lock.
	//
	//	idle    -F> running          the Force runs the function
	//	running -F> running          the Force waits
	//	running -R> ready, panicked  all waiters are resumed
	//	running -R> running          failed and cancelled, in the mode Restart: the first waiter is resumed to run the function
	//	running -R> idle             the same, without a waiter
	//	running -R> idle             failed in the mode Retry: all waiters are resumed with the error
	//
	// Invariant: in the state running, the field runner holds the forcing that runs the function. In all other states, the queue forcers is
	// empty.
	// Debt: when the function returns, the runner must resume all waiters, or pass the turn to the first waiter. If the context of a waiter
	// ends after it has got the turn and before it runs, the goroutine that ends the context passes the turn on, or else the waiter itself.

	state  atomicx.Uint32 // pending at first; set under the guard, after the fields below; pairs with the load in Force
	value  T
	err    error
	thrown any // the value with which the function has panicked

	core
	mode     Mode
	guard    suspend.Guard
	f        func(context.Context) (T, error) // only the runner reads it; nil once the state is ready or panicked
	forcers  suspend.Queue[turn, *forcing]
	watchers suspend.Queue[struct{}, struct{}] // waiters of ValueOp
}

const (
	pending uint32 = iota
	ready
	panicked
)

// A turn is the result of the wait in Force. It is true if the waiter must run the function, and false if the function has run.
type turn bool

// New returns a Lazy whose value f computes. The Lazy drops its reference to f when it keeps the results of f, or its panic. New panics if
// f is nil or the mode is unknown.
func New[T any](f func(ctx context.Context) (T, error), mode Mode) *Lazy[T] {
	switch {
	case f == nil:
		panic("lazy: New with a nil function")
	case mode > Retry:
		panic("lazy: New with an unknown mode")
	}
	return &Lazy[T]{f: f, mode: mode}
}

// Force returns the results of the function. The first Force runs the function in its own task, with a context derived from ctx. All other
// calls suspend until the function has run. The Lazy keeps the results, including an error, with two exceptions. In the modes Restart and
// Retry, if the function fails and the ctx of its Force is done, only that Force returns the error, and the Force that has waited longest
// runs the function again. In the mode Retry, any other error is returned by that Force, with the value that the function has returned, and
// by all that wait, with the zero T, and the next Force runs the function again. A panic is kept in every mode.
//
// If ctx is done before the call or during the wait, a Force that does not run the function returns the cancellation error. If this Force
// was about to run the function, the next waiter runs the function instead. A Force that runs the function does not return before the
// function has returned. If the function panics, every Force panics with the same value. If the function calls runtime.Goexit, every other
// Force returns an error that is suspend.ErrAbandoned, and, except in the mode Retry, so does every later Force: make a
// new Lazy to try again.
//
// Force returns ErrRecursive, and changes nothing, if it would wait for itself. It finds three kinds of cycles:
//   - the goroutine or task that calls Force runs the function, directly or through other functions that wait for each other;
//   - ctx is derived from the context that the function was given;
//   - tasks wait for each other's functions, and this Force closes the cycle. A cancelled Force counts as waiting until its task runs
//     again.
//
// Force does not find a cycle through another primitive, or through a task or the body of a suspend.Pull with an unrelated context. Such a
// cycle is a deadlock.
//
// The return of the function synchronizes before the return of every Force that gets the value.
func (l *Lazy[T]) Force(ctx context.Context) (T, error) {
	suspend.Preemptible()
	if l.state.Load() == ready {
		done := ctx.Done()
		if done == nil {
			return l.value, l.err
		}
		select {
		case <-done:
		default:
			return l.value, l.err
		}
	}
	return l.force(ctx)
}

func (l *Lazy[T]) force(ctx context.Context) (v T, err error) {
	if err := suspend.Err(ctx); err != nil {
		return v, err
	}
	if l.state.Load() != pending {
		return l.result()
	}
	me := newForcing(ctx, &l.core)
	defer me.stopWaiting()
	for {
		mine, err := suspend.Wait[turn](ctx, forceSource[T]{l, me})
		if err != nil {
			return v, err
		}
		if !mine {
			return l.result()
		}
		kept, err := l.keepTurn(ctx, me) // ctx may have ended during the wait
		if err != nil {
			return v, err
		}
		if kept {
			return l.evaluate(ctx, me)
		}
	}
}

// keepTurn reports whether the caller still has the turn, which it may have lost because its context has ended. If ctx is done or panics,
// keepTurn passes the turn on, because otherwise no waiter would run the function.
func (l *Lazy[T]) keepTurn(ctx context.Context, me *forcing) (kept bool, err error) {
	keep := false
	defer func() {
		l.guard.Lock()
		defer l.guard.Unlock()
		me.called = false
		if kept = l.runner.Load() == me; kept && !keep {
			l.passLocked()
		}
	}()
	err = suspend.Err(ctx)
	keep = err == nil
	return false, err
}

// evaluate runs the function and settles its outcome. A panic is raised again inside the deferred function that recovered it, so that it keeps
// its stack trace.
func (l *Lazy[T]) evaluate(ctx context.Context, me *forcing) (v T, err error) {
	if l.mode == Protect {
		me.Context = context.WithoutCancel(ctx)
	}
	me.runs(me)
	ledger.Took(l)
	outcome.Of(func() { v, err = l.f(me) }, func(o outcome.Outcome) {
		ledger.Gave(l)
		me.runs(me.in[byGoroutine])
		l.storeOutcome(ctx, o, v, err)
		if !o.Exited() {
			o.Rethrow()
		}
	})
	return v, err
}

// storeOutcome stores the outcome of the function, or passes the turn on in the modes Restart and Retry. A ctx that panics counts as done.
func (l *Lazy[T]) storeOutcome(ctx context.Context, o outcome.Outcome, v T, err error) {
	if o.Exited() {
		err = errAbandoned
	}
	again := (l.mode == Restart || l.mode == Retry) && o.Returned() && err != nil
	defer func() {
		l.guard.Lock()
		defer l.guard.Unlock()
		switch {
		case again:
			l.passLocked()
		case !o.Returned() && !o.Exited():
			l.thrown = o.Value()
			l.endLocked(panicked, v, nil)
		case l.mode == Retry && err != nil:
			l.runner.Store(nil)
			l.unlistAll()
			l.forcers.ResumeAll(false, err)
		default:
			l.endLocked(ready, v, err)
		}
	}()
	again = again && suspend.Err(ctx) != nil
}

// passLocked passes the turn to the first waiter, if any task waits. The waiter locks l.guard before it runs the function. The caller must
// hold l.guard.
func (l *Lazy[T]) passLocked() {
	next, ok := l.forcers.Resume(true, nil)
	if ok {
		next.called = true
	}
	l.runner.Store(next)
}

// passFrom passes the turn on if f has it and has not run since.
func (l *Lazy[T]) passFrom(f *forcing) {
	l.guard.Lock()
	defer l.guard.Unlock()
	if f.called {
		f.called = false
		l.passLocked()
	}
}

func (l *Lazy[T]) endLocked(state uint32, v T, err error) {
	l.value, l.err, l.f = v, err, nil
	l.state.Store(state)
	l.runner.Store(nil)
	l.forcers.ResumeAll(false, nil)
	l.watchers.ResumeAll(struct{}{}, nil)
}

// result returns the results of the function, or panics if the function has panicked. The state must not be pending.
func (l *Lazy[T]) result() (T, error) {
	if l.state.Load() == panicked {
		panic(l.thrown)
	}
	return l.value, l.err
}

// Value returns the results of the function, and reports whether the function has run. It never suspends. If the function has panicked, so
// does Value. If Value returns false, the function may have run by the time the caller sees the result.
func (l *Lazy[T]) Value() (v T, ok bool, err error) {
	suspend.Point()
	if l.state.Load() == pending {
		return v, false, nil
	}
	v, err = l.result()
	return v, true, err
}

// ValueOp returns an Op that waits until the Lazy keeps the results of the function, and returns them. The Op never runs the function, and
// takes no part in the search for cycles. It passes over the errors that the mode does not keep, and waits on for another Force: in the
// mode Retry, forever if none comes or none succeeds. If the function has panicked, so does a Select or Do that performs the Op, and so
// does the callback of a Then.
func (l *Lazy[T]) ValueOp() suspend.Op[T] {
	return suspend.Map(suspend.OpOf[struct{}]((*valueSource[T])(l)), func(struct{}, error) (T, error) { return l.result() })
}

// A forceSource is the Source of Force. It waits for the turn, or until the function has run.
type forceSource[T any] struct {
	*Lazy[T]
	me *forcing
}

func (s forceSource[T]) Guard() *suspend.Guard          { return &s.guard }
func (s forceSource[T]) Remove(r suspend.Resumer[turn]) { s.forcers.Remove(r) }

func (s forceSource[T]) Enqueue(r suspend.Resumer[turn]) {
	s.forcers.Push(r, s.me)
	s.me.lazy = s.Lazy
	r.LeaveTo(&s.me.heir, (*cancelled)(s.me))
}

func (s forceSource[T]) Try() (mine turn, ok bool, err error) {
	if s.state.Load() != pending {
		return false, true, nil
	}
	mine = s.runner.Load() == nil
	if mine {
		s.runner.Store(s.me)
	} else if s.me.closesCycle() {
		return false, true, ErrRecursive
	}
	return mine, bool(mine), nil
}

type valueSource[T any] Lazy[T]

func (s *valueSource[T]) Guard() *suspend.Guard               { return &s.guard }
func (s *valueSource[T]) Enqueue(r suspend.Resumer[struct{}]) { s.watchers.Push(r, struct{}{}) }
func (s *valueSource[T]) Remove(r suspend.Resumer[struct{}])  { s.watchers.Remove(r) }

func (s *valueSource[T]) Try() (v struct{}, ok bool, err error) {
	return v, s.state.Load() != pending, nil
}
