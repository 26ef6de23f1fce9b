package suspend

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/ledger"
)

// An Op is an operation that may have to wait, as a value: a receive, a lock, a promise, a timeout. An Op does nothing until it is
// performed. It may be performed any number of times, in four ways: by Do, which waits; by Then, with a continuation and no waiting
// task; as one of several cases, by Select; or inside another Op, by Map or Choose. An Op that loses a Select has no effect. The
// zero Op is never ready.
type Op[T any] struct{ performable[T] }

// A performable is an Op that is not zero. Its method expand appends the legs of one performance, of which one can win, to the
// slice that is its second argument. The first argument is the scheduler whose timers the legs use, or nil for the scheduler of
// the performing task.
type performable[T any] interface {
	expand(on Spawner, to []leg) ([]leg, result[T])
}

// A result holds the outcome of a performance. The third result of its method is false if another case has won.
type result[T any] interface {
	result() (v T, err error, won bool)
}

// Map returns op with its result changed by f. f runs after op has taken effect, under no guard. It runs in the task that has
// performed op, or on the executor of a Then.
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

func (op mapOp[T, U]) expand(on Spawner, to []leg) ([]leg, result[U]) {
	to, of := op.of.expand(on, to)
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

// Choose returns an Op that performs exactly one of ops. If several need not wait, it chooses at random, but SelectOrdered and
// TrySelect choose the first. The resulting Op may be a case of a Select, or may be given to Then.
func Choose[T any](ops ...Op[T]) Op[T] {
	ops = slices.DeleteFunc(slices.Clone(ops), func(op Op[T]) bool { return op.performable == nil })
	if len(ops) == 0 {
		return Op[T]{}
	}
	return Op[T]{chooseOp[T](ops)}
}

type chooseOp[T any] []Op[T]

func (op chooseOp[T]) expand(on Spawner, to []leg) ([]leg, result[T]) {
	results := make(chooseResult[T], len(op))
	for i := range op {
		to, results[i] = op[i].expand(on, to)
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

// Done returns an Op that is ready once ctx has ended. If another operation wins a Select, a later panic of ctx is dropped, so
// that the result of the winner is not lost.
func Done(ctx context.Context) Op[struct{}] {
	done := ctx.Done()
	if done == nil {
		return Op[struct{}]{}
	}
	return Op[struct{}]{doneOp{ctx, done}}
}

type doneOp struct {
	context.Context
	done <-chan struct{} // the result of ctx.Done, which Done calls under no guard
}

func (op doneOp) expand(_ Spawner, to []leg) ([]leg, result[struct{}]) {
	l := &levelLeg[struct{}]{
		ready: func() bool { return atomicx.Closed(op.done) },
		value: func() struct{} { return struct{}{} },
		call:  func(f func()) func() bool { return watching.OnDone(op.Context, f) },
	}
	return append(to, leg{does: l}), l
}

// A leg is one elementary operation of a performance, with its guard. A leg without a guard is a level: trying it consumes nothing,
// and it stays ready once it is ready.
type leg struct {
	does
	guard    *Guard
	of       int32 // the index of its case in a Select
	prepares bool  // the Source is an again.Preparer
	begun    bool  // the leg is a level, and this performance waits with it
}

// does is the interface of the operation of a leg. The caller of try, enqueue or remove must hold the guard, if the leg has one.
type does interface {
	try() bool                                            // performs the operation if it need not wait
	enqueue(b *waiter, began state, done <-chan struct{}) // queues a Resumer for the wait of b
	remove()                                              // undoes enqueue, in the same task, if the leg has not won
	won() bool                                            // reports whether this leg was resumed
	busy() bool                                           // reports whether a Select uses the leg; see clash
	abandon()                                             // gives up the slot after a panic
	about() (source any)                                  // returns the object, for the ledger
	took(then ledger.Then)                                // records that the operation was performed, see ledger.Holder
}

// These are indices that no leg has. With clash, a Case is used by two Selects at the same time: its leg waits for the first one
// when the second one looks at it.
const (
	none  = -1
	clash = -2
)

// A landing receives the value of a leg. Each leg has its own slot, but all legs of a Select share one word.
type landing[T any] struct {
	r     Resumer[T]
	v     T
	err   error
	has   bool // v and err are the result of the leg
	waits bool // the leg was queued, and neither won nor removed; another Select reads this field under the guard

	prepares bool // see sourceLeg
}

// land makes the Resumer for the wait of b that began with this state.
func (l *landing[T]) land(b *waiter, began state, done <-chan struct{}) Resumer[T] {
	s := l.r.slot
	if s == nil || s.b != b {
		s = &slot[T]{b: b, shared: true} // a separate allocation, since a stale Resumer must not retain the leg
	}
	s.abandonNode()
	l.r, l.waits = Resumer[T]{s, began, done}, true
	return l.r
}

func (l *landing[T]) busy() bool { return l.waits || l.has }

// abandon gives up the slot after a panic, because a resumer may still write to it.
func (l *landing[T]) abandon() { l.r = Resumer[T]{} }

func (l *landing[T]) took(ledger.Then) {}

func (l *landing[T]) won() bool {
	s := l.r.slot
	if s == nil || !s.hit {
		return false
	}
	s.hit = false
	l.v, l.err = s.takeOwn()
	l.has, l.waits = true, false
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

// A levelLanding is the landing of a level. No guard orders two Selects that use it, so its field begun is atomic.
type levelLanding[T any] struct {
	landing[T]
	begun atomic.Bool // the wait of the level has begun, and the level has neither won nor been removed
}

func (l *levelLanding[T]) busy() bool { return l.begun.Load() }

func (l *levelLanding[T]) land(b *waiter, began state, done <-chan struct{}) Resumer[T] {
	l.begun.Store(true)
	return l.landing.land(b, began, done)
}

func (l *levelLanding[T]) won() bool {
	won := l.landing.won()
	if won {
		l.begun.Store(false)
	}
	return won
}

// A levelLeg is a leg that needs no guard, such as the end of a context.
type levelLeg[T any] struct {
	levelLanding[T]
	ready func() bool
	value func() T
	call  func(f func()) (stop func() bool) // calls f once the leg is ready, perhaps before it returns
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

// remove drops a panic of l.stop, because the task must still get the value or the lock of a leg that has won.
func (l *levelLeg[T]) remove() {
	defer l.begun.Store(false)
	if stop := l.stop; stop != nil { // it is nil if l.call has panicked
		l.stop = nil
		takeBack(stop)
	}
}
