package runner

// Questions of a scheduler about the task that runs.

// On reports whether the caller is on r: in one of its tasks or on its own goroutine.
func (r *Runner) On() bool { return r.here() }

// Step returns the number of the step that runs. The caller is on r.
func (r *Runner) Step() int { return r.steps }

// EndTurn makes RunSome return after the step that runs. The caller is on r.
func (r *Runner) EndTurn() { r.budget = 0 }
