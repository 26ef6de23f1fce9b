package stage

// Prioritize sets f to be asked for the priority of each task, from 0, which every task has by default, to 3. Tasks of a higher one begin
// first. Where a full queue rejects, a task displaces the last in turn of the lowest priority, if this is below its own: the
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
