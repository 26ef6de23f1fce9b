package suspend

import (
	"context"
	"slices"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/ledger"
)

// An Op is an operation that may have to wait, as a value: a receive, a lock, a promise, a timeout. Nothing happens until it is
// performed. It may be performed any number of times, in one of four ways: by Do, in direct style; by Then, with a continuation and no
// waiting task; as one case of several, by Select; or inside another Op, by Map or Choose. An Op that is not chosen has had no effect.
// The zero Op is never ready.
type Op[T any] struct{ performable[T] }

// A performable is an Op that is not the zero Op. begin appends the legs of a performance, one of which is to win. on is the scheduler
// whose timers they use. nil means the performing task's scheduler.
type performable[T any] interface {
	begin(on Spawner, to []leg) ([]leg, result[T])
}

// A result holds the outcome of a performance. won is false if another case has won.
type result[T any] interface {
	result() (v T, err error, won bool)
}

// Map is op with its result changed by f, which runs in the task that performed op, after it has taken effect, and
// under no lock.
func Map[T, U any](op Op[T], f func(T, error) (U, error)) Op[U] {
	if f == nil {
		panic("suspend: Map with a nil function")
	}
	if op.performable == nil {
		return Op[U]{}
	}
	return Op[U]{mapOp[T, U]{op, f}}
}

type mapOp[T, U any] struct {
	of Op[T]
	f  func(T, error) (U, error)
}

func (op mapOp[T, U]) begin(on Spawner, to []leg) ([]leg, result[U]) {
	to, of := op.of.begin(on, to)
	return to, &mapResult[T, U]{of, op.f}
}

type mapResult[T, U any] struct {
	of result[T]
	f  func(T, error) (U, error)
}

func (r *mapResult[T, U]) result() (u U, err error, won bool) {
	v, err, won := r.of.result()
	if won {
		u, err = r.f(v, err)
	}
	return u, err, won
}

// Choose performs one of ops, the first in a random order that can be. Like any Op, it may be a case of a Select, or
// given to Then.
func Choose[T any](ops ...Op[T]) Op[T] {
	ops = slices.DeleteFunc(slices.Clone(ops), func(op Op[T]) bool { return op.performable == nil })
	if len(ops) == 0 {
		return Op[T]{}
	}
	return Op[T]{chooseOp[T](ops)}
}

type chooseOp[T any] []Op[T]

func (op chooseOp[T]) begin(on Spawner, to []leg) ([]leg, result[T]) {
	results := make(chooseResult[T], len(op))
	for i := range op {
		to, results[i] = op[i].begin(on, to)
	}
	return to, results
}

type chooseResult[T any] []result[T]

func (r chooseResult[T]) result() (v T, err error, won bool) {
	for _, of := range r {
		if v, err, won = of.result(); won {
			break
		}
	}
	return v, err, won
}

// Done is ready once ctx is done. A panic of ctx is dropped if another operation has won, since the result of that one must not be
// lost.
func Done(ctx context.Context) Op[struct{}] {
	done := ctx.Done()
	if done == nil {
		return Op[struct{}]{}
	}
	return Op[struct{}]{doneOp{ctx, done}}
}

type doneOp struct {
	context.Context
	done <-chan struct{} // Done has called ctx.Done, under no guard
}

func (op doneOp) begin(_ Spawner, to []leg) ([]leg, result[struct{}]) {
	l := &levelLeg[struct{}]{
		ready: func() bool { return atomicx.Closed(op.done) },
		value: func() struct{} { return struct{}{} },
		call:  func(f func()) func() bool { return watching.OnDone(op.Context, f) },
	}
	return append(to, leg{does: l}), l
}

// A leg is one operation of a performance, not made of others, with its guard. A leg without a guard is a level: looking at it takes
// nothing, and once it is ready it stays so.
type leg struct {
	does
	guard    *Guard
	of       int32 // the index of its case in a Select
	prepares bool  // does is a preparing
}

type does interface {
	try() bool                                            // under the guard
	enqueue(b *waiter, began state, done <-chan struct{}) // under the guard, with what makes a Resumer of a slot
	remove()                                              // under the guard, in the task that enqueued; not called on the winner
	won() bool                                            // whether it has been resumed, once the suspension is over
	abandon()                                             // after a panic
	about() (source any)                                  // the ledger shows it
	took(then ledger.Then)                                // called when it is performed, see ledger.Holder
}

// none is no leg.
const none = -1

// A landing is where the value of a leg arrives. Each leg has its own slot, on the word that all legs share.
type landing[T any] struct {
	r   Resumer[T]
	v   T
	err error
	has bool // the leg has won: there is a result
}

// land makes the Resumer of a wait.
func (l *landing[T]) land(b *waiter, began state, done <-chan struct{}) Resumer[T] {
	s := l.r.slot
	if s == nil || s.b != b {
		s = &slot[T]{b: b, shared: true} // a stale Resumer would keep a slot inside the leg alive, and the leg
	}
	s.abandonNode()
	l.r = Resumer[T]{s, began, done}
	return l.r
}

// abandon gives up the slot after a panic: somebody may be writing to it.
func (l *landing[T]) abandon() { l.r = Resumer[T]{} }

func (l *landing[T]) took(ledger.Then) {}

func (l *landing[T]) won() bool {
	s := l.r.slot
	if s == nil || !s.hit {
		return false
	}
	s.hit = false
	l.v, l.err = s.takeOwn()
	l.has = true
	return true
}

func (l *landing[T]) result() (v T, err error, won bool) {
	if l.has {
		var zero T
		v, err, won = l.v, l.err, true
		l.v, l.err, l.has = zero, nil, false
	}
	return v, err, won
}

// A levelLeg waits for something that has no guard and needs none.
type levelLeg[T any] struct {
	landing[T]
	ready func() bool
	value func() T
	call  func(f func()) (stop func() bool) // calls f, maybe before it returns
	stop  func() bool
}

func (l *levelLeg[T]) about() any { return doneOp{} }

func (l *levelLeg[T]) try() bool {
	if !l.ready() {
		return false
	}
	l.v, l.has = l.value(), true
	return true
}

func (l *levelLeg[T]) enqueue(b *waiter, began state, done <-chan struct{}) {
	r := l.land(b, began, done)
	l.stop = l.call(func() { r.Resume(l.value(), nil) })
}

// remove withdraws the waiting leg. Another may have won, and the task must get its value or its lock.
func (l *levelLeg[T]) remove() {
	if stop := l.stop; stop != nil { // a nil stop means a panic before the timer began
		l.stop = nil
		takeBack(stop)
	}
}
