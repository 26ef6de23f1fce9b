package suspend

import (
	"context"
)

// An Op is an operation that may have to wait, as a value: a receive, a lock, a promise, a timeout. Nothing happens until it is
// performed. It may be performed any number of times, in one of four ways: by Do, in direct style; by Then, with a continuation and no
// waiting task; as one case of several, by Select; or inside another Op, by Map or Choose. An Op that is not chosen has had no effect.
// The zero Op is never ready.
type Op[T any] struct{ event event[T] }

// A Source is what an Op is made of outside this package: an operation on an object with a Guard. All methods but
// Guard are called with the guard held, those of other objects often as well: they must not suspend, panic, block, or
// call anything back.
//
// Try performs the operation if it need not wait, and reports whether it did; (v, err) is its result then, and if it
// takes a waiter to do so, it commits with exactly one Resume. A Try that reports false must leave the object closed: as
// long as the guard is held, nothing may make the operation possible (an object with an atomic fast path sets its
// waiter bit). Enqueue then leaves r where a Resume under the guard will find it, as a rule in a Queue. Remove takes
// r away, if it is still there. Guard may return nil for a level, what takes nothing to look at and stays ready once
// it is (a deadline, an end): its methods are called under no lock of its own, and Enqueue resumes r if it is ready. It
// always returns the same.
type Source[T any] interface {
	Guard() *Guard
	Try() (v T, ok bool, err error)
	Enqueue(r Resumer[T])
	Remove(r Resumer[T])
}

// OpOf returns the operation that s describes.
func OpOf[T any](s Source[T]) Op[T] {
	if s == nil {
		panic("suspend: nil Source")
	}
	return Op[T]{sourceEvent[T]{s}}
}

// Do performs op and returns its result, suspending the caller until it is possible. If ctx is done first, or already,
// it returns the error of the cancellation, and op has had no effect.
func Do[T any](ctx context.Context, op Op[T]) (T, error) {
	c := On(op)
	if _, err := Select(ctx, c); err != nil {
		var zero T
		return zero, err
	}
	return c.Result()
}

// Map is op with its result changed by f, which runs in the task that performed op, after it has taken effect, and
// under no lock.
func Map[T, U any](op Op[T], f func(T, error) (U, error)) Op[U] {
	if f == nil {
		panic("suspend: Map with a nil function")
	}
	if op.event == nil {
		return Op[U]{}
	}
	return Op[U]{mapEvent[T, U]{op.event, f}}
}

// Choose performs one of ops, the first in a random order that can be. Like any Op, it may be a case of a Select, or
// given to Then.
func Choose[T any](ops ...Op[T]) Op[T] {
	var events []event[T]
	for _, op := range ops {
		if op.event != nil {
			events = append(events, op.event)
		}
	}
	if len(events) == 0 {
		return Op[T]{}
	}
	return Op[T]{chooseEvent[T](events)}
}

// Done is ready once ctx is done. A panic of ctx is dropped if another operation has won, since the result of that one must not be
// lost.
func Done(ctx context.Context) Op[struct{}] {
	done := ctx.Done()
	if done == nil {
		return Op[struct{}]{}
	}
	return Op[struct{}]{doneEvent{ctx, done}}
}

// An event is an Op that is not performed, and prepare makes it ready for that. on is the scheduler whose timers it uses. nil stands for
// that of the performing task.
type event[T any] interface{ prepare(on Spawner) prepared[T] }

// A prepared Op has the arms of which one is to win, and turns the winner into its result.
type prepared[T any] interface {
	arms(to []leg) []leg
	result() (v T, err error, won bool) // won: it was one of its arms
}

// An arm is an operation that is not made of others.
type arm interface {
	try() bool         // under the guard
	enqueue(w waiting) // under the guard
	remove()           // under the guard, in the task that enqueued; not called on the winner
	won() bool         // whether it has been resumed, once the suspension is over
	abandon()          // after a panic
}

// A leg is an arm with its guard. One without a guard is a level: looking at it takes nothing, and once it is ready it
// stays so.
type leg struct {
	arm
	guard    *Guard
	of       int32 // the index of its case in a Select
	prepares bool  // it is a Preparer's
}

// A waiting is the part of a suspension that all arms share: its state, and the other fields of a Resumer but the slot.
type waiting struct {
	b    *waiter
	wait state
	done <-chan struct{}
}

// A landing is where the value of an arm arrives. It has a slot of its own, on the state that all arms share.
type landing[T any] struct {
	r   Resumer[T]
	v   T
	err error
	has bool // the arm has won: there is a result
}

// land makes the Resumer for w.
func (l *landing[T]) land(w waiting) Resumer[T] {
	s := l.r.slot
	if s == nil || s.b != w.b {
		s = &slot[T]{b: w.b, shared: true} // not a part of the arm, which a stale Resumer would keep
	}
	s.abandonNode()
	l.r = Resumer[T]{s, w.wait, w.done}
	return l.r
}

// abandon gives up the slot after a panic: somebody may be writing to it.
func (l *landing[T]) abandon() { l.r = Resumer[T]{} }

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

type sourceEvent[T any] struct{ s Source[T] }

func (e sourceEvent[T]) prepare(Spawner) prepared[T] { return &sourceArm[T]{s: e.s} }

type sourceArm[T any] struct {
	landing[T]
	s Source[T]
}

func (a *sourceArm[T]) arms(to []leg) []leg { return append(to, leg{arm: a, guard: a.s.Guard()}) }
func (a *sourceArm[T]) enqueue(w waiting)   { a.s.Enqueue(a.land(w)) }
func (a *sourceArm[T]) remove()             { a.s.Remove(a.r) }

func (a *sourceArm[T]) try() bool {
	a.v, a.has, a.err = a.s.Try()
	return a.has
}

type mapEvent[T, U any] struct {
	event[T]
	f func(T, error) (U, error)
}

func (e mapEvent[T, U]) prepare(on Spawner) prepared[U] {
	return &mapPrepared[T, U]{e.event.prepare(on), e.f}
}

type mapPrepared[T, U any] struct {
	prepared[T]
	f func(T, error) (U, error)
}

func (p *mapPrepared[T, U]) result() (u U, err error, won bool) {
	v, err, won := p.prepared.result()
	if !won {
		return u, nil, false
	}
	u, err = p.f(v, err)
	return u, err, true
}

type chooseEvent[T any] []event[T]

func (e chooseEvent[T]) prepare(on Spawner) prepared[T] {
	p := make(choosePrepared[T], len(e))
	for i, x := range e {
		p[i] = x.prepare(on)
	}
	return p
}

type choosePrepared[T any] []prepared[T]

func (p choosePrepared[T]) arms(to []leg) []leg {
	for _, x := range p {
		to = x.arms(to)
	}
	return to
}

func (p choosePrepared[T]) result() (v T, err error, won bool) {
	for _, x := range p {
		if v, err, won = x.result(); won {
			return v, err, true
		}
	}
	return v, nil, false
}

type doneEvent struct {
	context.Context
	done <-chan struct{} // asked for under no guard
}

func (e doneEvent) prepare(Spawner) prepared[struct{}] {
	return &levelArm[struct{}]{
		ready: func() bool { return closed(e.done) },
		value: func() struct{} { return struct{}{} },
		call:  func(f func()) func() bool { return watching.OnDone(e.Context, f) },
	}
}

// A levelArm waits for something that has no guard and needs none.
type levelArm[T any] struct {
	landing[T]
	ready func() bool
	value func() T
	call  func(f func()) (stop func() bool) // calls f, maybe before it returns
	stop  func() bool
}

func (a *levelArm[T]) arms(to []leg) []leg { return append(to, leg{arm: a}) }

// remove withdraws the waiting arm. Another arm may have won, and the task must get its value or its lock.
func (a *levelArm[T]) remove() {
	if stop := a.stop; stop != nil { // or else it panicked before it was begun
		a.stop = nil
		takeBack(stop)
	}
}

func (a *levelArm[T]) try() bool {
	if !a.ready() {
		return false
	}
	a.v, a.has = a.value(), true
	return true
}

func (a *levelArm[T]) enqueue(w waiting) {
	r := a.land(w)
	a.stop = a.call(func() { r.Resume(a.value(), nil) })
}
