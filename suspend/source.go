package suspend

import (
	"github.com/braidgo/braid/internal/again"
	"github.com/braidgo/braid/internal/ledger"
)

// A Source describes an operation on an object with a Guard, for OpOf and Wait. All methods but Guard are called with the guard
// held, and often with the guards of other objects. They must not suspend, block, panic, or call foreign code.
//
// Try performs the operation if it need not wait. The result ok reports whether it did, and (v, err) is the result of the
// operation. If Try serves another waiter, it commits together with exactly one Resume that returns true. If Try returns false, it
// must leave the object closed: while the guard is held, nothing may make the operation possible. For example, an object with an
// atomic fast path sets its waiter bit. After such a Try, Enqueue stores r where a Resume under the guard will find it, usually in
// a Queue. Remove takes r away if it is still there. Guard always returns the same Guard.
//
// Guard may return nil for a level: a condition that consumes nothing and stays true, such as the passing of a deadline or the end
// of a context. The methods of a level are called under no guard. Its Enqueue resumes r if the condition is already true.
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
	return Op[T]{sourceOp[T]{s}}
}

type sourceOp[T any] struct{ s Source[T] }

func (op sourceOp[T]) expand(_ Spawner, to []leg) ([]leg, result[T]) {
	l := &sourceLeg[T]{s: op.s}
	if m, ok := op.s.(again.Maker[Source[T]]); ok {
		l.s, l.prepares = m.Anew(), true
	}
	return append(to, leg{does: l, guard: l.s.Guard(), prepares: l.prepares}), l
}

// A sourceLeg performs the operation of s. If prepares is true, s is also an again.Preparer.
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

func (l *sourceLeg[T]) result() (v T, err error, won bool) {
	if v, err, won = l.landing.result(); won && l.prepares {
		l.s.(again.Preparer).Settle()
	}
	return v, err, won
}

// dropAgain drops a result that only requests another look, and reports whether it did.
func (l *sourceLeg[T]) dropAgain() bool {
	if !l.has || l.err != again.Err {
		return false
	}
	var zero T
	l.v, l.err, l.has = zero, nil, false
	return true
}

// preparer returns the Preparer of a leg whose field prepares is true.
func (l leg) preparer() again.Preparer { return l.about().(again.Preparer) }

// prepare calls Prepare for each leg that has a Preparer.
func prepare(legs []leg) {
	for _, l := range legs {
		if l.prepares {
			l.preparer().Prepare()
		}
	}
}

// wantsAgain reports whether the winning leg only requests another look. No other leg has taken effect then, because a look ends
// with the first leg that succeeds.
func wantsAgain(legs []leg, won int) bool {
	return won != none && legs[won].prepares && legs[won].does.(interface{ dropAgain() bool }).dropAgain()
}

// unprepare calls Drop for the legs that have a Preparer and have not won.
func unprepare(legs []leg, won int) {
	for i, l := range legs {
		if i != won && l.prepares {
			l.preparer().Drop()
		}
	}
}

// remove calls s.Remove under the guard g, after a wait that was not resumed.
func remove[T any, S Source[T]](s S, r Resumer[T]) {
	g := s.Guard()
	g.Lock()
	s.Remove(r)
	g.Unlock()
}
