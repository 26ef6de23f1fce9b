package stage

// drop implements server.
func (s *Stage[In, Out]) drop(t *task, err error) (tell func()) {
	e := s.take(func(e *item[In, Out]) bool { return e.t == t })[0]
	s.gaveUp(1)
	return func() { s.tell(e, verdict{fate: failed, err: err, service: notServed}) }
}

// take removes the queued tasks for which the function out returns true, and returns them.
func (s *Stage[In, Out]) take(out func(*item[In, Out]) bool) (gone []item[In, Out]) {
	gone = s.hurry.sweep(out)
	for level := len(s.urgent); level >= 0; level-- {
		gone = append(gone, s.lineOf(level).sweep(out)...)
	}
	for i := range gone {
		gone[i].left()
	}
	s.queued(-len(gone))
	return gone
}

// sweepDue reports whether a rejection must search the queue for tasks whose Do has returned. A queue of N tasks is searched once in
// N rejections, so that a rejection takes constant time on average.
func (s *Stage[In, Out]) sweepDue() bool {
	if s.rejects++; s.rejects < s.waiting {
		return false
	}
	s.rejects = 0
	return true
}

// sweep removes and returns the queued tasks whose Do has returned. The caller must end them. Lent tasks stay, because they begin
// soon.
func (s *Stage[In, Out]) sweep(now int64) []item[In, Out] {
	gone := s.take(func(e *item[In, Out]) bool { return e.ticket != lent && e.t.gone.Load() })
	s.cancelled += uint64(len(gone))
	if len(gone) > 0 {
		s.admit(now)
		s.settleIf()
	}
	return gone
}

// displace removes a queued task of a lower priority than t, if there is one. The caller must end the removed task.
func (s *Stage[In, Out]) displace(t *task) (e item[In, Out], ok bool) {
	for level := range min(int(t.level), len(s.urgent)) {
		r := s.lineOf(level)
		if r.len == 0 {
			continue
		}
		if s.o.LIFO {
			r.popFront(&e)
		} else {
			r.popBack(&e)
		}
		e.left()
		s.queued(-1)
		s.gaveUp(1)
		return e, true
	}
	return e, false
}
