package coro

// What a scheduler with more than one worker needs to know of its tasks, since it has no Runner.

// Why returns the reason of t's last switch. After Yielded it tells a real yield from a park that was woken before it
// took effect.
func (t *Task) Why() Switch { return t.why }

// Begin says that t is about to run, on the worker that s watches. It also ends the step before.
func (s *Stalls) Begin(t *Task) { s.begin(t) }

// End says that no task runs. It may be left out between two steps.
func (s *Stalls) End() { s.end() }
