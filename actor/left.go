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

// A leaving is a SendAfter, a Watch or a Link that the actor may have to take back, with the function that does so. One without a function
// marks the beginning of a Catch.
type leaving = dlist.Node[func()]

// leave puts l behind all other leavings.
func (s *Self[M]) leave(l *leaving, takeBack func()) {
	l.Value = takeBack
	s.guard.Lock()
	s.tiesLocked().left.Push(l)
	s.guard.Unlock()
}

// take takes l out, and reports whether it was there. The one caller that gets true decides its fate.
func (s *Self[M]) take(l *leaving) (mine bool) {
	s.guard.Lock()
	defer s.guard.Unlock()
	return s.ties.left.Remove(l)
}

// takeBack takes back all leavings behind mark, and takes mark out. A nil mark stands for the beginning.
func (s *Self[M]) takeBack(mark *leaving) {
	for l := s.lastLeft(); l != nil && l != mark; l = s.lastLeft() {
		if l.Value != nil {
			l.Value()
		}
	}
}

// lastLeft takes out the last leaving, nil if there is none.
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
