package suspend

import (
	"github.com/braidgo/braid/internal/again"
	"github.com/braidgo/braid/internal/ledger"
)

// A Source is what an Op is made of outside this package: an operation on an object with a Guard. All methods but
// Guard are called with the guard held, and often with the guards of other objects: they must not suspend, panic, block, or
// call anything back.
//
// Try performs the operation if it need not wait, and reports whether it did; (v, err) is its result then, and if it
// takes a waiter to do so, it commits with exactly one Resume. A Try that reports false must leave the object closed: as
// long as the guard is held, nothing may make the operation possible (an object with an atomic fast path sets its
// waiter bit). Enqueue then leaves r where a Resume under the guard will find it, as a rule in a Queue. Remove takes
// r away, if it is still there. Guard may return nil for a level, a condition that consumes nothing and stays true
// (a deadline, an end): its methods are called under no guard, and Enqueue resumes r if it is ready. It
// always returns the same.
type Source[T any] interface {
	Guard() *Guard
	Try() (v T, ok bool, err error)
	Enqueue(r Resumer[T])
	Remove(r Resumer[T])
}

// OpOf returns the operation that s describes.
func OpOf[T any](s Source[T]) Op[T] {
	switch s := s.(type) {
	case nil:
		panic("suspend: nil Source")
	case again.Maker[Source[T]]:
		return Op[T]{madeOp[T]{s}}
	}
	return Op[T]{sourceOp[T]{s}}
}

type sourceOp[T any] struct{ s Source[T] }

func (op sourceOp[T]) begin(_ Spawner, to []leg) ([]leg, result[T]) {
	l := &sourceLeg[T]{s: op.s}
	return append(to, leg{does: l, guard: op.s.Guard()}), l
}

type sourceLeg[T any] struct {
	landing[T]
	s Source[T]
}

func (l *sourceLeg[T]) remove() { l.s.Remove(l.r) }

func (l *sourceLeg[T]) about() any { return l.s }

func (l *sourceLeg[T]) took(then ledger.Then) {
	if h, ok := l.s.(ledger.Holder); ok && l.err == nil {
		h.Took(then)
	}
}

func (l *sourceLeg[T]) try() bool {
	l.v, l.has, l.err = l.s.Try()
	return l.has
}

func (l *sourceLeg[T]) enqueue(b *waiter, began state, done <-chan struct{}) {
	l.s.Enqueue(l.land(b, began, done))
}

// A madeOp makes a Source for each performance.
type madeOp[T any] struct{ again.Maker[Source[T]] }

func (op madeOp[T]) begin(_ Spawner, to []leg) ([]leg, result[T]) {
	s := op.Anew()
	l := &preparingLeg[T]{sourceLeg[T]{s: s}, s.(again.Preparer)}
	return append(to, leg{does: l, guard: s.Guard(), prepares: true}), l
}

// A preparing leg is a Preparer's.
type preparing interface {
	again.Preparer
	again() bool // its result only requests another look
}

type preparingLeg[T any] struct {
	sourceLeg[T]
	again.Preparer
}

func (l *preparingLeg[T]) result() (v T, err error, won bool) {
	if v, err, won = l.landing.result(); won {
		l.Settle()
	}
	return v, err, won
}

func (l *preparingLeg[T]) again() bool {
	if !l.has || l.err != again.Err {
		return false
	}
	var zero T
	l.v, l.err, l.has = zero, nil, false
	return true
}

// prepare prepares the legs of Preparers.
func prepare(legs []leg) {
	for _, l := range legs {
		if l.prepares {
			l.does.(preparing).Prepare()
		}
	}
}

// wantsAgain reports whether the leg that has won, if any, only requests another look. A look ends with such a leg, so no other
// has had an effect in the same look.
func wantsAgain(legs []leg, won int) bool {
	return won != none && legs[won].prepares && legs[won].does.(preparing).again()
}

// unprepare drops what the legs that have not won have prepared.
func unprepare(legs []leg, won int) {
	for i, l := range legs {
		if i != won && l.prepares {
			l.does.(preparing).Drop()
		}
	}
}

// remove takes r away after a wait that was not resumed.
func remove[T any, S Source[T]](g *Guard, s S, r Resumer[T]) {
	g.Lock()
	s.Remove(r)
	g.Unlock()
}
