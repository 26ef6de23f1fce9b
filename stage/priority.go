package stage

// levels is the number of priorities.
const levels = 4

// Prioritize sets f to be asked for the priority of each task, from 0, which every task has by default, to 3. Tasks of a higher one begin
// first. Where a full queue rejects, a task displaces the last in turn of the lowest priority, if that is below its own: the
// displaced task fails with ErrDisplaced, and counts as Late. Callers that wait for room get in in the order in which they came.
// A priority beyond 0 and 3 is the nearest of these. Prioritize returns s; call it before the first task.
func (s *Stage[In, Out]) Prioritize(f func(in In) int) *Stage[In, Out] {
	s.priority = f
	s.urgent = make([]ring[item[In, Out]], levels-1)
	return s
}

// rank is called without the guard, as it asks the user.
func (s *Stage[In, Out]) rank(t *task, in In) {
	if s.priority != nil {
		t.level = uint8(min(max(s.priority(in), 0), levels-1))
	}
}

// line returns where t waits.
func (s *Stage[In, Out]) line(t *task) *ring[item[In, Out]] { return s.lineOf(int(t.level)) }

func (s *Stage[In, Out]) lineOf(level int) *ring[item[In, Out]] {
	if s.urgent == nil || level == 0 {
		return &s.ring
	}
	return &s.urgent[level-1]
}

// first returns the line of the task that begins next.
func (s *Stage[In, Out]) first() *ring[item[In, Out]] {
	if s.hurry.len > 0 {
		return &s.hurry
	}
	for level := len(s.urgent); level > 0; level-- {
		if r := s.lineOf(level); r.len > 0 {
			return r
		}
	}
	return &s.ring
}

// displace makes room for t, if a task of a lower priority waits. The caller tells that task.
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
		s.progress++ // until it is told
		return e, true
	}
	return e, false
}

// tell ends a task that was displaced. OnFail may suspend, so it runs in a task of its own.
func (s *Stage[In, Out]) tell(e item[In, Out]) {
	end := func() { s.end(&e, verdict{fate: late, err: s.errs.displaced}) }
	if s.onFail == nil {
		end()
	} else if s.pool.on.Go(end) != nil {
		go end()
	}
}
