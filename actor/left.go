package actor

import "github.com/braidgo/braid/internal/dlist"

// A cleanup is a function that was left with OnEnd.
type cleanup struct {
	older *cleanup
	f     func()
}

// OnEnd leaves a function that is called when the actor ends, the last one first, in its task; or when it fails in a Catch or a
// Restart, if it was left there. It is for actors without a stack to defer on.
func (s *Self[M]) OnEnd(f func()) {
	if f == nil {
		panic("actor: OnEnd with a nil function")
	}
	s.onEnd = &cleanup{s.onEnd, f}
}

// runOnEnd calls the functions that were left with OnEnd after mark, the last one first.
func (s *Self[M]) runOnEnd(mark *cleanup) {
	for s.onEnd != mark {
		c := s.onEnd
		s.onEnd = c.older
		c.f()
	}
}

// A leaving is what the actor has left with others: a SendAfter, a Watch or a Link. Its function takes that back. One without a function
// is where a Catch begins.
type leaving = dlist.Node[func()]

// leave puts l, which is told apart from what was left before it, behind all others.
func (s *Self[M]) leave(l *leaving, takeBack func()) {
	l.Value = takeBack
	s.guard.Lock()
	s.tiesLocked().left.Push(l)
	s.guard.Unlock()
}

// take takes l out, and reports whether it was there. One caller gets true: it decides what becomes of l.
func (s *Self[M]) take(l *leaving) (mine bool) {
	s.guard.Lock()
	defer s.guard.Unlock()
	return s.ties.left.Remove(l)
}

// takeBack takes back what the actor has left since mark, and mark itself; with nil, all.
func (s *Self[M]) takeBack(mark *leaving) {
	for l := s.lastLeft(); l != nil && l != mark; l = s.lastLeft() {
		if l.Value != nil {
			l.Value()
		}
	}
}

// lastLeft takes out what was left last, nil if there is nothing.
func (s *Self[M]) lastLeft() *leaving {
	s.guard.Lock()
	defer s.guard.Unlock()
	if s.ties == nil {
		return nil
	}
	l := s.ties.left.Last()
	if l != nil {
		s.ties.left.Remove(l)
	}
	return l
}
