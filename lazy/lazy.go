// Package lazy provides a value that is computed by the first task that forces it, on any scheduler.
//
// sync.OnceValues cannot be cancelled, blocks the threads of its waiters, and deadlocks if its function needs its own value. A Lazy
// passes a context to the function, and a waiter gives up with its own:
//
//	config := lazy.New(func(ctx context.Context) (*Config, error) { return load(ctx) }, lazy.Restart)
//	...
//	c, err := config.Force(ctx)
//
// The function runs once. The Mode says whether a cancelled run counts. A Force that would wait for itself returns ErrRecursive.
// For many values by key, each loaded once, see keyed.Cache.
//
// Use sync.OnceValues where the function is quick or cannot be cancelled, and a promise where the work starts before it is asked for.
package lazy

import (
	"context"
	"errors"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/ledger"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend"
)

// ErrRecursive is the error of a Force that would wait for itself. The program has a circle of definitions.
var ErrRecursive = errors.New("lazy: recursive")

// ErrAbandoned is the error of a lazy value whose function ended its task with runtime.Goexit. It stays: make a new Lazy to try again.
var ErrAbandoned = outcome.Named("lazy: the function did not return", suspend.ErrAbandoned)

// A Mode is the fate of a function that fails after its task was cancelled.
type Mode uint8

const (
	Restart Mode = iota // the function counts as not run: the next Force runs it again, a waiting Force first
	Record              // the error is remembered, like any other
	Protect             // the function is not cancelled with the task, its context being context.WithoutCancel of the task's
)

// A Lazy is a function and, once that has run, its result. New makes a Lazy, and it must not be copied. Forcing a computed value takes
// no lock.
type Lazy[T any] struct {
	// -F> is a Force, -R> the one that runs the function, under no lock.
	//
	//	idle    -F> running          it runs the function
	//	running -F> running          it waits
	//	running -R> ready, panicked  all waiters are resumed
	//	running -R> running          in Restart, stopped: the first waiter is resumed to run the function
	//	running -R> idle             the same, without a waiter
	//
	// Invariant: forcers is empty unless a task runs the function, whose forcing is in runner.
	// Debt: the runner owes all waiters the end, or the first waiter the turn. A waiter that is cancelled with the turn
	// passes it on.

	state  atomicx.Uint32 // pending, until set under guard, after the fields below; pairs with the load in Force
	value  T
	err    error
	thrown any // the value of the function's panic

	core
	mode     Mode
	guard    suspend.Guard
	f        func(context.Context) (T, error) // read by the runner; nil once ready or panicked
	forcers  suspend.Queue[turn, *forcing]
	watchers suspend.Queue[struct{}, struct{}] // waiters of ValueOp
}

const (
	pending uint32 = iota
	ready
	panicked
)

// A turn is true if a resumed forcer must run the function, and false if the function has run.
type turn bool

// New returns a value that f computes. f is dropped once it has run. A nil f and an unknown mode panic.
func New[T any](f func(ctx context.Context) (T, error), mode Mode) *Lazy[T] {
	switch {
	case f == nil:
		panic("lazy: New of a nil function")
	case mode > Protect:
		panic("lazy: New with an unknown mode")
	}
	return &Lazy[T]{f: f, mode: mode}
}

// Force returns the results of the function. The first Force runs the function, in its own task and with a context derived from ctx. All
// others suspend until it is done. The results are remembered, an error too, with one exception: in the mode Restart, an error that
// comes with a done ctx goes to this Force only, and the longest waiting one runs the function next.
//
// If ctx is done first, or already, a Force that does not run the function returns the cancellation error. If it had the turn, the next
// one gets it. A Force that runs the function waits for its return. A panic of the function is remembered, and raised with the same
// value in every Force. If the function ends its task by runtime.Goexit, every other Force gets ErrAbandoned, for good.
//
// Force returns ErrRecursive, and changes nothing, where it would wait for itself. It finds three kinds of circles:
//   - the goroutine or task that calls Force runs the function, directly or through other functions that wait for each other;
//   - ctx descends from the context that the function was given;
//   - tasks wait for each other's functions, and this Force closes the circle. A Force that is cancelled waits until its task runs again.
//
// It does not find a circle through another primitive, through a task with an unrelated context, or through the body of a suspend.Pull
// with an unrelated context. Such a circle is a deadlock like any other.
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
	defer me.leave()
	mine, err := suspend.Wait[turn](ctx, forceSource[T]{l, me}, false)
	if err != nil {
		return v, err
	}
	if !mine {
		return l.result()
	}
	if err := l.keepTurn(ctx); err != nil { // after a wait
		return v, err
	}
	return l.run(ctx, me)
}

// keepTurn passes the turn on if ctx is done by now, or panics: otherwise no waiter would run the function.
func (l *Lazy[T]) keepTurn(ctx context.Context) (err error) {
	keep := false
	defer func() {
		if !keep {
			l.guard.Lock()
			l.passLocked()
			l.guard.Unlock()
		}
	}()
	err = suspend.Err(ctx)
	keep = err == nil
	return err
}

// run runs the function. The panic goes on from inside its own defer, so that it keeps its stack trace.
func (l *Lazy[T]) run(ctx context.Context, me *forcing) (v T, err error) {
	if l.mode == Protect {
		me.Context = context.WithoutCancel(ctx)
	}
	me.runs(me)
	if ledger.On() {
		ledger.Took(l, 1, 1, 0)
	}
	outcome.Of(func() { v, err = l.f(me) }, func(o outcome.Outcome) {
		if ledger.On() {
			ledger.Gave(l, 1)
		}
		me.runs(me.in[byGoroutine])
		l.settle(ctx, o, v, err)
		if !o.Exited() {
			o.Rethrow()
		}
	})
	return v, err
}

// settle remembers how the function has ended, or passes the turn on. A ctx that panics counts as done.
func (l *Lazy[T]) settle(ctx context.Context, o outcome.Outcome, v T, err error) {
	again := l.mode == Restart && o.Returned() && err != nil
	defer func() {
		l.guard.Lock()
		defer l.guard.Unlock()
		switch {
		case again:
			l.passLocked()
		case o.Returned():
			l.endLocked(ready, v, err)
		case o.Exited():
			l.endLocked(ready, v, ErrAbandoned)
		default:
			l.thrown = o.Value()
			l.endLocked(panicked, v, nil)
		}
	}()
	again = again && suspend.Err(ctx) != nil
}

// passLocked gives the turn to the next waiter, if there is one. It stores the runner before that runs.
func (l *Lazy[T]) passLocked() {
	for l.forcers.Len() > 0 {
		l.runner.Store(*l.forcers.Head())
		if _, ok := l.forcers.ResumeHead(true, nil); ok {
			return
		}
	}
	l.runner.Store(nil)
}

func (l *Lazy[T]) endLocked(state uint32, v T, err error) {
	l.value, l.err, l.f = v, err, nil
	l.state.Store(state)
	l.runner.Store(nil)
	l.forcers.ResumeAll(false, nil)
	l.watchers.ResumeAll(struct{}{}, nil)
}

// result is called once there is one.
func (l *Lazy[T]) result() (T, error) {
	if l.state.Load() == panicked {
		panic(l.thrown)
	}
	return l.value, l.err
}

// Value returns the results of the function, and whether it has run. It never suspends. If the function has panicked, so does Value. The
// answer that there is no value may be stale on return.
func (l *Lazy[T]) Value() (v T, ok bool, err error) {
	suspend.Point()
	if l.state.Load() == pending {
		return v, false, nil
	}
	v, err = l.result()
	return v, true, err
}

// ValueOp is an Op that waits until another task has forced the value, and returns it. It never runs the function, and does not take
// part in the search for circles. If the function has panicked, so does a Select or Do that performs the Op, and the callback of a Then.
func (l *Lazy[T]) ValueOp() suspend.Op[T] {
	return suspend.Map(suspend.OpOf[struct{}]((*valueSource[T])(l)), func(struct{}, error) (T, error) { return l.result() })
}

// A forceSource is the Source of Force: it waits for the turn, or for the end.
type forceSource[T any] struct {
	*Lazy[T]
	me *forcing
}

func (s forceSource[T]) Guard() *suspend.Guard           { return &s.guard }
func (s forceSource[T]) Enqueue(r suspend.Resumer[turn]) { s.forcers.Push(r, s.me) }
func (s forceSource[T]) Remove(r suspend.Resumer[turn])  { s.forcers.Remove(r) }

func (s forceSource[T]) Try() (mine turn, ok bool, err error) {
	if s.state.Load() != pending {
		return false, true, nil
	}
	mine = s.runner.Load() == nil
	if mine {
		s.runner.Store(s.me)
	} else if s.me.closesCircle() {
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
