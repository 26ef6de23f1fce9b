package actor

import (
	"time"
)

// OnEnd registers a function that the actor calls in its task when it ends. The functions are called in reverse order of registration.
// A function that was registered inside a Catch or a Restart is called earlier if the actor fails inside it. OnEnd replaces defer for
// actors without a stack.
func (s *Self[M]) OnEnd(f func()) {
	if f == nil {
		panic("actor: OnEnd with a nil function")
	}
	s.onEnd = &cleanup{s.onEnd, f}
}

// runOnEnd calls the functions that were registered with OnEnd after mark, the last function first.
func (s *Self[M]) runOnEnd(mark *cleanup) {
	for s.onEnd != mark {
		c := s.onEnd
		s.onEnd = c.older
		c.f()
	}
}

// leave appends l to the actor's leavings. The function takeBack undoes l; it is nil if l is a mark.
func (s *Self[M]) leave(l *leaving, takeBack func()) {
	l.Value = takeBack
	s.guard.Lock()
	s.tiesLocked().left.Push(l)
	s.guard.Unlock()
}

// take removes l from the actor's leavings, and reports whether l was still there. Only one caller gets true, and that caller must
// handle l.
func (s *Self[M]) take(l *leaving) (mine bool) {
	s.guard.Lock()
	defer s.guard.Unlock()
	return s.ties.left.Remove(l)
}

// takeBack undoes the leavings that were appended after mark, the last one first, and removes mark. If mark is nil, takeBack undoes all
// leavings.
func (s *Self[M]) takeBack(mark *leaving) {
	for l := s.lastLeft(); l != nil && l != mark; l = s.lastLeft() {
		if l.Value != nil {
			l.Value()
		}
	}
}

// lastLeft removes and returns the last leaving, or nil if there is none.
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

// Watch sends the message as(err) to this actor, once, when the other actor has ended with err, or at once if it has already ended. The
// message arrives after all messages that the other actor has sent to this one. The ending actor calls as(err), which must not suspend.
// Once stop has returned, no message is sent.
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
		moved, start := s.acceptLocked(m, s.requestOf(m), true) // after stop has removed the leaving, this line is not reached
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

// A watch is a node in two lists: the watched actor's watchers, and the watching actor's leavings.
type watch struct {
	watcher
	leaving leaving
}

// Link ties this actor to another. If one of the two fails, the other one is killed with an *ExitError. If the other actor has already
// failed, this actor is killed at once. A normal end kills neither actor. An actor that a Link has killed fails with the *ExitError
// itself.
func (s *Self[M]) Link(other Actor) {
	me, it := &s.life, other.lifeOf()
	var here, there watcher
	var mine leaving
	here.Value = func(err error) { // this function is called at this actor's end
		if err != nil {
			other.Kill(exit(me, err))
		}
	}
	there.Value = func(err error) {
		me.unwatch(&here)
		held := s.take(&mine) // held is false if the Link was just undone
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

// exit returns the cause with which a Link kills the other actor after l has failed with err. If err is an *ExitError, exit returns
// err, which names the actor that failed first.
func exit(l *life, err error) error {
	if e, ok := err.(*ExitError); ok {
		return e
	}
	return &ExitError{l.name(), err}
}

// SendAfter sends m to the actor itself after the time d, unless the returned function is called first. This function reports whether
// it prevented the send. A SendAfter can set a deadline for several waits. If the actor ends first, m does not become a dead letter,
// because it was never accepted.
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

// A later is a SendAfter whose message has not been sent.
type later struct {
	leaving leaving
	cancel  func() bool
}

// failReceived fails the requests that the actor has received and neither answered nor passed on. It is called when a Catch handles
// err.
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
