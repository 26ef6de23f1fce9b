package stage

// drop implements server.
func (s *Stage[In, Out]) drop(t *task, err error) (tell func()) {
	e := s.removeQueued(func(e *item[In, Out]) bool { return e.t == t })[0]
	s.gaveUp(1)
	return func() { s.giveUpInTask(e, verdict{fate: failed, err: err, service: notServed}) }
}

// removeQueued removes the queued tasks for which the function out returns true, and returns them.
func (s *Stage[In, Out]) removeQueued(out func(*item[In, Out]) bool) (gone []item[In, Out]) {
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
	gone := s.removeQueued(func(e *item[In, Out]) bool { return e.ticket != lent && e.t.gone.Load() })
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

// gaveUp counts n tasks, which were taken off the queue, as tasks in progress until s.giveUpQueued has been called for each.
func (c *core) gaveUp(n int) {
	c.progress += n
	c.givenUp += n
}

// giveUpQueued gives up a task that was taken off the queue and counted by gaveUp.
func (s *Stage[In, Out]) giveUpQueued(e *item[In, Out], v verdict) {
	t := e.t
	defer func() {
		t.ends(v.err)
		s.pool.guard.Lock()
		s.givenUp--
		s.countFate(e, v.fate, v.service, s.pool.now())
		s.pool.unlockAndPay()
	}()
	t.gid.Store(0) // t is in no handler
	if t.unwanted() && !t.wasCut() {
		v.fate, v.err = cancelled, errorOf(t)
		return
	}
	s.report(t, e.in, v.err)
}

// giveUpInTask calls s.giveUpQueued for a task that belongs to another caller. OnFail may suspend, so it runs in a new task.
func (s *Stage[In, Out]) giveUpInTask(e item[In, Out], v verdict) {
	end := func() { s.giveUpQueued(&e, v) }
	if s.onFail == nil {
		end()
	} else if s.pool.on.Go(end) != nil {
		go end()
	}
}
