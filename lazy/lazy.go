// Package lazy provides a value that is computed by the first that asks for it, on whatever scheduler that is.
package lazy

import (
	"context"
	"errors"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend"
)

// ErrRecursive is the error of a Force that would wait for itself.
var ErrRecursive = errors.New("lazy: recursive")

// ErrAbandoned is the error of a lazy value whose function ended its task with runtime.Goexit.
var ErrAbandoned = errors.New("lazy: the function did not return")

// A Mode says what becomes of a function that fails when the task that runs it has been cancelled.
type Mode uint8

const (
	Restart Mode = iota // it is as if it had not run: the next runs it again, one that waits already if there is one
	Record              // the error is remembered, like any other
	Protect             // the function is not cancelled with the task, its context being context.WithoutCancel of the task's
)

// A Lazy is a function and, once that has run, what it returned. It is made by New; it must not be copied. Forcing
// one that has its value takes no lock.
//
// -F> is a Force, -R> the one that runs the function. It runs it under no lock.
//
//	idle    -F> running          it runs the function
//	running -F> running          it waits
//	running -R> ready, panicked  all that wait are resumed
//	running -R> running          in Restart, stopped: the first that waits is resumed to run the function
//	running -R> idle             the same, and nobody waits
//
// Invariant: forcers is empty unless somebody runs the function; whose forcing is in runner.
// Debt: who runs the function owes those that wait their end, or one of them the turn; who is given the turn and is
// cancelled by then passes it on.
type Lazy[T any] struct {
	state  atomicx.Uint32 // pending, until set under guard, after what it tells of; pairs with the load in Force
	value  T
	err    error
	thrown any // what the function panicked with

	core
	mode     Mode
	guard    suspend.Guard
	f        func(context.Context) (T, error) // read by who runs it; nil once ready or panicked
	forcers  suspend.Queue[turn, *forcing]
	watchers suspend.Queue[struct{}, struct{}] // of ValueOp
}

const (
	pending uint32 = iota
	ready
	panicked
)

// A turn is what a forcer is resumed with: to run the function, or to find it run.
type turn bool

// New returns a value that f computes. f is dropped once it has run.
func New[T any](f func(ctx context.Context) (T, error), mode Mode) *Lazy[T] {
	if f == nil {
		panic("lazy: New of a nil function")
	}
	return &Lazy[T]{f: f, mode: mode}
}

// Force returns the value, which is what the function returned. The first to come runs the function, in its own task
// and with a context derived from ctx; all others are suspended until it is done. What it returned is remembered,
// an error too, unless the error came with ctx done and the mode is Restart: then only this Force returns it, and the
// longest waiting of the others runs the function next.
//
// If ctx is done first, or already, a Force that does not run the function returns the error of the cancellation, and
// if it had been given the turn, the next has it. One that runs it waits for it to return. A panic of the function is
// remembered, and raised with the same value in every Force; its runtime.Goexit ends the task that ran it, and the
// others get ErrAbandoned, for good.
//
// Force returns ErrRecursive, and changes nothing, where it would wait for itself. It does if the function is being
// run, directly or by way of other functions that wait for each other, by the goroutine or task that calls Force, or
// if ctx descends from the context that was given to the function; and so does the Force that closes a circle of any
// number of tasks that wait for each other's functions. Not seen, and a deadlock like any other, is a circle that goes
// through another primitive, a task with an unrelated context that the function has started and waits for, or the
// body of a suspend.Pull with an unrelated context.
//
// The return of the function synchronizes before the return of every Force that gets the value.
func (l *Lazy[T]) Force(ctx context.Context) (T, error) {
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
	if me.enter() {
		return v, ErrRecursive
	}
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

// keepTurn passes the turn on if ctx is done by now, or panics.
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
	me.begin()
	outcome.Of(func() { v, err = l.f(me) }, func(o outcome.Outcome) {
		me.end()
		l.settle(ctx, o, v, err)
		if !o.Exited() {
			o.Rethrow()
		}
	})
	return v, err
}

// settle remembers how the function has ended, or has it run again. Should ctx panic, it is as if it were done.
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

// passLocked gives the turn to the next, or to nobody. The runner is there before it runs.
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

// Value returns what Force would, and whether it would without running the function or waiting for it. It never
// suspends. If the function has panicked, so does Value. The answer that there is no value may be stale on return.
func (l *Lazy[T]) Value() (v T, ok bool, err error) {
	if l.state.Load() == pending {
		return v, false, nil
	}
	v, err = l.result()
	return v, true, err
}

// ValueOp is an Op that waits until somebody has forced the value, and returns it. It never runs the function, nor
// does it count as a Force that may be recursive. If the function has panicked, so does the performing of the Op.
func (l *Lazy[T]) ValueOp() suspend.Op[T] {
	return suspend.Map(suspend.OpOf[struct{}]((*valueSource[T])(l)), func(struct{}, error) (T, error) { return l.result() })
}

// A forceSource is what Force waits for: its turn, or the end.
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
