package actor

// Watch sends as(err) to this actor when another one has ended with err, once, and behind all that the other one has sent to it; at
// once if the other one has ended before. as is called by the ending actor and must not suspend. After stop, no message comes.
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
		moved, start := s.acceptLocked(m, s.requestOf(m), true) // with the watch forgotten: after a stop, nothing comes
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

// A watch is in two lists: among the watchers of the one actor, and among the leavings of the other.
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
	here.Value = func(err error) { // of this actor's end
		if err != nil {
			other.Kill(exit(me, err))
		}
	}
	there.Value = func(err error) {
		me.unwatch(&here)
		s.take(&mine)
		if err != nil {
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

// exit returns the cause with which a Link kills after l has failed with err. A failure that has come by a Link keeps its first actor.
func exit(l *life, err error) error {
	if e, ok := err.(*ExitError); ok {
		return e
	}
	return &ExitError{l.name(), err}
}
