package stage

// serve takes the next task and sees it out of the stage. It is called with the guard held and returns so.
func (s *Stage[In, Out]) serve(w *worker) {
	if s.batch != nil {
		s.serveBatch(w)
		return
	}
	if s.paced && s.holds(w) {
		return
	}
	var e item[In, Out]
	s.pop(&e)
	s.slots++
	s.progress++
	isLate := s.begun(e.since, w.now)
	w.at, w.task = &s.core, e.t
	s.pool.release()
	w.owed.pay()
	w.named(&s.core)

	returned := false
	defer func() {
		if !returned {
			s.abandoned(w, &e)
		}
	}()
	v := verdict{}
	out, done := s.perform(&e, isLate, w, &v)
	if done && e.way.to != nil {
		if due, ok := e.way.to.pass(e.t, out, w.now, &s.core); ok {
			returned = true
			s.slots--
			s.leave(&e, completed, v.service, w.now)
			w.owed.dues = due
			return
		}
	}
	if done {
		s.handOn(&e, out, &w.now, &v)
	}
	s.decide(&e, &v)
	returned = true
	s.slots--
	s.finish(&e, &v, w.now, &w.owed)
}

// perform runs the handler, and reports whether its result is to be handed on. Otherwise v is the fate of the task. w.now is
// the time of the last event, before and after.
func (s *Stage[In, Out]) perform(e *item[In, Out], isLate bool, w *worker, v *verdict) (out Out, done bool) {
	t := e.t
	t.at = &s.core
	t.gid.Store(w.gid)
	if isLate || t.over() {
		s.notPaced()
		s.notBegun(t, e.in, v)
		w.now = s.pool.now()
		return out, false
	}
	start := w.now
	out, err := s.call(t, e.in)
	w.now = s.pool.now()
	v.service = w.now - start
	if err != nil {
		s.failure(t, e.in, err, v)
		if s.onFail != nil { // it takes time
			w.now = s.pool.now()
		}
	}
	return out, err == nil
}

// abandoned is called while a panic or a Goexit ends the worker. It gives back the slot and the permit.
func (s *Stage[In, Out]) abandoned(w *worker, e *item[In, Out]) {
	defer func() {
		p := s.pool
		p.guard.Lock()
		p.running--
		w.at, w.task = nil, nil
		s.slots--
		s.leave(e, failed, 0, p.now())
		p.release()
		e.t.leave(ErrAbandoned)
		p.guard.Lock()
		p.end(w)
	}()
	s.report(e.t, e.in, ErrAbandoned)
}
