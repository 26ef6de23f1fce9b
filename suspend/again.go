package suspend

import "github.com/braidgo/braid/internal/again"

// A madeOp has a Source of its own for each performance.
type madeOp[T any] struct{ again.Maker[Source[T]] }

func (op madeOp[T]) begin(_ Spawner, to []leg) ([]leg, result[T]) {
	s := op.Anew()
	l := &preparingLeg[T]{sourceLeg[T]{s: s}, s.(again.Preparer)}
	return append(to, leg{does: l, guard: s.Guard(), prepares: true}), l
}

// A preparing leg is a Preparer's.
type preparing interface {
	again.Preparer
	again() bool // its result asks only for another look
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

// prepare prepares the legs that ask for it.
func prepare(legs []leg) {
	for _, l := range legs {
		if l.prepares {
			l.does.(preparing).Prepare()
		}
	}
}

// wantsAgain reports whether the leg that has won, if any, only asks for another look. A look ends with such a leg, so no other
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
