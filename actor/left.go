package actor

import (
	"time"
)

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

// leave puts l behind all other leavings.
func (s *Self[M]) leave(l *leaving, takeBack func()) {
	l.Value = takeBack
	s.guard.Lock()
	s.tiesLocked().left.Push(l)
	s.guard.Unlock()
}

// take takes l out, and reports whether it was there. Only one caller gets true, and must handle l.
func (s *Self[M]) take(l *leaving) (mine bool) {
	s.guard.Lock()
	defer s.guard.Unlock()
	return s.ties.left.Remove(l)
}

// takeBack takes back all leavings behind mark, and takes mark out. A nil mark means the beginning.
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

// Watch sends as(err) to this actor when another actor has ended with err, once, and behind all that the other actor has sent to it; at
// once if the other actor has ended before. as is called by the ending actor and must not suspend. After stop, no message comes.
func (s *Self[M]) Watch(other Actor, as func(err error) M) (stop func()) {
	w := new(watch)
	at := other.lifeOf()
	w.Value = func(err error) {
		m := as(err)
		s.guard.Lock()
		if !s.ties.left.Remove(&w.leaving) || s.closed {
			s.guard.Unlock()
			return
		}
		moved, start := s.acceptLocked(m, s.requestOf(m), true) // the watch is forgotten: after a stop, nothing comes
		s.guard.Unlock()
		moved.drop()
		if start {
			s.launch()
		}
	}
	takeBack := func() { at.unwatch(&w.watcher) }
	s.leave(&w.leaving, takeBack)
	at.watch(&w.watcher)
	return func() {
		if s.take(&w.leaving) {
			takeBack()
		}
	}
}

// A watch is in two lists: in the watchers of the watched actor, and in the leavings of the watching actor.
type watch struct {
	watcher
	leaving leaving
}

// Link kills each of the two actors, with an *ExitError, if the other one fails; at once if it has failed before. A normal end kills
// nobody. The failure of an actor that a Link has killed is the *ExitError with which it was killed.
func (s *Self[M]) Link(other Actor) {
	me, it := &s.life, other.lifeOf()
	var here, there watcher
	var mine leaving
	here.Value = func(err error) { // called at this actor's end
		if err != nil {
			other.Kill(exit(me, err))
		}
	}
	there.Value = func(err error) {
		me.unwatch(&here)
		held := s.take(&mine) // false if the Link was taken back just now
		if held && err != nil {
			s.kill(exit(it, err))
		}
	}
	s.leave(&mine, func() {
		me.unwatch(&here)
		it.unwatch(&there)
	})
	me.watch(&here)
	it.watch(&there)
}

// exit returns the cause with which a Link kills after l has failed with err. A failure that arrived by a Link keeps its first actor.
func exit(l *life, err error) error {
	if e, ok := err.(*ExitError); ok {
		return e
	}
	return &ExitError{l.name(), err}
}

// SendAfter sends m to the actor itself once d has passed, unless stop comes first; stop reports whether it did. An absolute
// deadline is made with it. If the actor ends first, m goes nowhere, as it was not accepted yet.
func (s *Self[M]) SendAfter(d time.Duration, m M) (stop func() bool) {
	l := new(later)
	s.leave(&l.leaving, func() { l.cancel() })
	q := s.requestOf(m)
	l.cancel = s.afterFunc(d, func() {
		if s.take(&l.leaving) {
			_ = s.post(m, q, true)
		}
	})
	return func() bool {
		if !s.take(&l.leaving) {
			return false
		}
		l.cancel()
		return true
	}
}

// A later is a SendAfter on its way.
type later struct {
	leaving leaving
	cancel  func() bool
}

// failReceived fails the requests that the actor has received and neither answered nor sent on, as it has failed with err and goes
// on.
func (s *Self[M]) failReceived(err error) {
	s.guard.Lock()
	if s.calls == nil {
		s.guard.Unlock()
		return
	}
	stay := map[*call]bool{}
	waits := func(m M, n note) {
		if n.q == nil {
			n.q = s.requestOf(m)
		}
		if n.q != nil {
			stay[n.q.call()] = true
		}
	}
	s.mail.each(waits)
	s.arrived.each(waits)
	calls := s.takeCallsLocked(stay)
	s.guard.Unlock()
	calls.fail(err)
}
