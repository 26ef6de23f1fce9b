package stage

// Prioritize sets f, which returns the priority of a task, from 0, the default, to 3. Tasks of a higher priority begin first.
// Where a full queue rejects, a task displaces the last in turn of the lowest priority, if this is below its own: the
// displaced task fails with ErrDisplaced, and counts as Late. Callers that wait for room get in in the order in which they came.
// A priority beyond 0 and 3 is the nearest of these. Prioritize returns s; call it before the first task.
func (s *Stage[In, Out]) Prioritize(f func(in In) int) *Stage[In, Out] {
	s.priority = f
	s.urgent = make([]ring[item[In, Out]], levels-1)
	return s
}

// rank must be called without the guard, as it calls the user's function.
func (s *Stage[In, Out]) rank(t *task, in In) {
	if s.priority != nil {
		t.level = uint8(min(max(s.priority(in), 0), levels-1))
	}
}
