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
	s.life.onEnd = &cleanup{s.life.onEnd, f}
}

// runOnEnd calls the functions that were registered with OnEnd after mark, the last function first.
func (l *life) runOnEnd(mark *cleanup) {
	for l.onEnd != mark {
		c := l.onEnd
		l.onEnd = c.older
		c.f()
	}
}

// pushUndo registers f in u. f is nil if u is a mark.
func (l *life) pushUndo(u *undo, f func()) {
	u.Value = f
	l.guard.Lock()
	l.tiesLocked().undos.Push(u)
	l.guard.Unlock()
}

// removeUndo removes u, and reports whether it was still registered. Only one caller gets true, and that caller must call the function
// or drop it.
func (l *life) removeUndo(u *undo) (mine bool) {
	l.guard.Lock()
	defer l.guard.Unlock()
	return l.ties.undos.Remove(u)
}

// undoSince calls the functions that were registered after mark, the last one first, and removes mark. If mark is nil, undoSince calls
// all functions.
func (l *life) undoSince(mark *undo) {
	for u := l.popUndo(); u != nil && u != mark; u = l.popUndo() {
		if u.Value != nil {
			u.Value()
		}
	}
}

// popUndo removes and returns the last undo, or nil if there is none.
func (l *life) popUndo() *undo {
	l.guard.Lock()
	defer l.guard.Unlock()
	if l.ties == nil {
		return nil
	}
	u := l.ties.undos.Last()
	if u != nil {
		l.ties.undos.Remove(u)
	}
	return u
}

// Watch sends the message as(err) to this actor, once, when the other actor has ended with err, or at once if it has already ended. The
// message arrives after all messages that the other actor has sent to this one. The ending actor calls as(err), which must not suspend.
// Once stop has returned, no message is sent.
//
// If the other actor is in another process (see package natsactor), the message is sent once when that actor has ended, when it cannot
// be reached, or when the Ref itself has ended, whichever comes first. The order of messages is then not promised.
func (s *Self[M]) Watch(other Actor, as func(err error) M) (stop func()) {
	w := new(watch)
	me, at := &s.life, other.lifeOf()
	w.Value = func(err error) {
		m := as(err)
		me.guard.Lock()
		if !me.ties.undos.Remove(&w.undo) || me.closed {
			me.guard.Unlock()
			return
		}
		moved, start := s.acceptLocked(m, s.requestOf(m), true) // after stop has removed the undo, this line is not reached
		me.guard.Unlock()
		moved.drop()
		if start {
			me.launch()
		}
	}
	hangUp := func() {}
	unwatch := func() {
		at.unwatch(&w.watcher)
		hangUp()
	}
	me.pushUndo(&w.undo, unwatch)
	at.watch(&w.watcher)
	if at.line {
		hangUp = at.watchFar(func(err error) {
			at.unwatch(&w.watcher)
			w.Value(err)
		})
	}
	return func() {
		if me.removeUndo(&w.undo) {
			unwatch()
		}
	}
}

// A watch is a node in two lists: the watched actor's watchers, and the watching actor's undos.
type watch struct {
	watcher
	undo undo
}

// Link ties this actor to another. If one of the two fails, the other one is killed with an *ExitError. If the other actor has already
// failed, this actor is killed at once. A normal end kills neither actor. An actor that a Link has killed fails with the *ExitError
// itself. Link panics if the other actor is in another process, which cannot be killed from here.
func (s *Self[M]) Link(other Actor) {
	if other.lifeOf().line {
		panic("actor: Link to an actor in another process")
	}
	s.life.link(other.lifeOf())
}

func (l *life) link(other *life) {
	var here, there watcher
	var u undo
	here.Value = func(err error) { // this function is called at this actor's end
		if err != nil {
			other.kill(exit(l, err))
		}
	}
	there.Value = func(err error) {
		l.unwatch(&here)
		held := l.removeUndo(&u) // held is false if the Link was just undone
		if held && err != nil {
			l.kill(exit(other, err))
		}
	}
	l.pushUndo(&u, func() {
		l.unwatch(&here)
		other.unwatch(&there)
	})
	l.watch(&here)
	other.watch(&there)
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
	me, l := &s.life, new(later)
	me.pushUndo(&l.undo, func() { l.cancel() })
	q := s.requestOf(m)
	l.cancel = me.afterFunc(d, func() {
		if me.removeUndo(&l.undo) {
			_ = s.post(m, q, true)
		}
	})
	return func() bool {
		if !me.removeUndo(&l.undo) {
			return false
		}
		l.cancel()
		return true
	}
}

// A later is a SendAfter whose message has not been sent.
type later struct {
	undo   undo
	cancel func() bool
}

// failReceived fails the requests that the actor has received and neither answered nor passed on. It is called when a Catch handles
// err.
func (l *life) failReceived(err error) {
	l.guard.Lock()
	if l.calls == nil {
		l.guard.Unlock()
		return
	}
	stay := map[*call]bool{}
	l.box.keepRequestsLocked(stay)
	calls := l.takeCallsLocked(stay)
	l.guard.Unlock()
	calls.fail(err)
}

// keepRequestsLocked adds the requests in the mailbox to stay.
func (in *Inbox[M]) keepRequestsLocked(stay map[*call]bool) {
	keep := func(m M, n note) {
		if n.q == nil {
			n.q = in.requestOf(m)
		}
		if n.q != nil {
			stay[n.q.call()] = true
		}
	}
	in.mail.each(keep)
	in.arrived.each(keep)
}
