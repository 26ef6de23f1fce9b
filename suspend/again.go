package suspend

import "errors"

// ErrAgain is how a Preparer says that the operation has to be prepared and looked at again.
var ErrAgain = errors.New("suspend: look again")

// A Preparer is a Source whose operation takes code of others to find out whether it need not wait: a transaction, whose
// function must not run under a guard. Prepare is called under no guard, by the task that performs the operation, or on the
// executor of a Then, before each look; it must not suspend. Try may be called twice after one Prepare, if it reports false the
// first time.
//
// Try returns (v, true, ErrAgain) if what Prepare has found out is stale by now. A Preparer that waits is resumed with
// ErrAgain when it is worth another look. Either way all cases of a Select are prepared and looked at again, and nothing has
// happened.
//
// Drop is called under no guard when the operation is over and was not performed: another case was, or the wait has failed,
// or a Prepare has panicked. It may also come between two looks. The Preparer then keeps nothing of what Prepare has found out. If ctx is
// done just after a Drop between two looks, the last one comes without a Prepare since, and finds nothing to drop.
type Preparer[T any] interface {
	Source[T]
	Prepare()
	Drop()
}

// OpMade returns the operation of a Source with a state of its own: anew makes one for each Case, each Do and each Then.
func OpMade[T any](anew func() Preparer[T]) Op[T] {
	if anew == nil {
		panic("suspend: OpMade with a nil function")
	}
	return Op[T]{madeEvent[T]{anew}}
}

type madeEvent[T any] struct{ anew func() Preparer[T] }

func (e madeEvent[T]) prepare(Spawner) prepared[T] {
	p := e.anew()
	return &preparerArm[T]{sourceArm[T]{s: p}, p}
}

type preparerArm[T any] struct {
	sourceArm[T]
	p Preparer[T]
}

func (a *preparerArm[T]) arms(to []leg) []leg {
	return append(to, leg{arm: a, guard: a.s.Guard(), prepares: true})
}

func (a *preparerArm[T]) prepare()   { a.p.Prepare() }
func (a *preparerArm[T]) unprepare() { a.p.Drop() }

func (a *preparerArm[T]) again() bool {
	if !a.has || a.err != ErrAgain {
		return false
	}
	var zero T
	a.v, a.err, a.has = zero, nil, false
	return true
}

// prepare prepares the legs that ask for it.
func prepare(legs []leg) {
	for _, l := range legs {
		if l.prepares {
			l.arm.(interface{ prepare() }).prepare()
		}
	}
}

// again reports whether the leg that has won, if any, only asks for another look. A look ends with such a leg, so no other
// has had an effect in the same look.
func again(legs []leg, won int) bool {
	return won != none && legs[won].prepares && legs[won].arm.(interface{ again() bool }).again()
}

// unprepare drops what the legs that have not won have prepared.
func unprepare(legs []leg, won int) {
	for i, l := range legs {
		if i != won && l.prepares {
			l.arm.(interface{ unprepare() }).unprepare()
		}
	}
}
