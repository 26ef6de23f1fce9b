package stage

// Prioritize sets f, which returns the priority of a task, from 0 to 3. Without f, the priority is 0. A priority outside this range
// is clamped. Tasks of a higher priority begin first. If a full queue would reject a task, the task displaces the last queued task
// of the lowest priority, if that priority is lower than the new task's own. The displaced task fails with ErrDisplaced, and counts
// as Late. Callers that wait for room get it in the order of arrival. Prioritize returns s. Call Prioritize before the first task.
func (s *Stage[In, Out]) Prioritize(f func(in In) int) *Stage[In, Out] {
	s.priority = f
	s.urgent = make([]ring[item[In, Out]], levels-1)
	return s
}

// rank sets the priority of t. The caller must not hold the guard, because rank calls the user's function.
func (s *Stage[In, Out]) rank(t *task, in In) {
	if s.priority != nil {
		t.level = uint8(min(max(s.priority(in), 0), levels-1))
	}
}
