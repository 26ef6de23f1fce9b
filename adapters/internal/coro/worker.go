package coro

// What a scheduler with more than one worker needs to know of its tasks, since it has no Runner.

// Why returns what t gave control back for, last: of a task that Step has called Yielded it tells whether it
// was in fact suspended, and woken before it was parked.
func (t *Task) Why() Switch { return t.why }

// Begin says that t is about to run, on the worker that s watches.
func (s *Stalls) Begin(t *Task) {
	if s != nil {
		s.begin(t)
	}
}

// End says that the task has given control back.
func (s *Stalls) End() {
	if s != nil {
		s.end()
	}
}
