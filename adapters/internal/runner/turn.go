package runner

import "github.com/braidgo/braid/suspend"

// Questions of a scheduler about the task that runs.

// Enter takes the caller into the core and reports true, if the caller is on r: in the task that runs, or on r's own
// goroutine. It must leave the core by Exit, before anything that may suspend and before any foreign code.
func (r *Runner) Enter() bool { return r.enter() }

// Exit ends what Enter began.
func (r *Runner) Exit() { r.exit() }

// Outside reports whether the caller, which is not on r, is a task of r.
func (r *Runner) Outside() bool {
	if r.lease == nil {
		return false
	}
	t, ok := suspend.Current().(*Task)
	return ok && t.runner.Load() == r
}

// Step returns the number of the step that runs. The caller is in the core.
func (r *Runner) Step() int { return r.steps }

// EndTurn makes RunSome return after the step that runs. The caller is in the core.
func (r *Runner) EndTurn() { r.budget = 0 }
