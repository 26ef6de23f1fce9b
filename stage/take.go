package stage

// drop implements server.
func (s *Stage[In, Out]) drop(t *task, err error) (tell func()) {
	e := s.take(func(e *item[In, Out]) bool { return e.t == t })[0]
	s.gaveUp(1)
	return func() { s.tell(e, verdict{fate: failed, err: err, service: notServed}) }
}

// take takes tasks that wait off their lines.
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

// sweepDue reports whether the queue is to be searched for tasks whose Do has returned. N rejections pay for a queue of N
// tasks, so that a rejection takes constant time on average.
func (s *Stage[In, Out]) sweepDue() bool {
	if s.rejects++; s.rejects < s.waiting {
		return false
	}
	s.rejects = 0
	return true
}

// sweep removes the tasks whose Do has returned; the caller must end them. Lent tasks stay, as they begin soon.
func (s *Stage[In, Out]) sweep(now int64) []item[In, Out] {
	gone := s.take(func(e *item[In, Out]) bool { return e.ticket != lent && e.t.gone.Load() })
	s.cancelled += uint64(len(gone))
	if len(gone) > 0 {
		s.admit(now)
		s.settleIf()
	}
	return gone
}

// displace makes room for t, if a task of a lower priority waits. The caller must end that task.
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
