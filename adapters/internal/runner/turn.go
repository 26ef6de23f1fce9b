package runner

import "github.com/braidgo/braid/suspend"

// This file gives schedulers access to the running task and its step.

// Enter takes the caller into the core if the caller is on r: in the running task, or on r's own goroutine. Enter
// reports whether it did. The caller must leave the core with Exit before it calls foreign code or anything that may
// suspend.
func (r *Runner) Enter() bool { return r.enterCore() }

// Exit leaves the core after a successful Enter.
func (r *Runner) Exit() { r.exit() }

// Outside reports whether the caller, which must not be on r, is a task of r.
func (r *Runner) Outside() bool {
	if r.lease == nil {
		return false
	}
	t, ok := suspend.Current().(*Task)
	return ok && t.runner.Load() == r
}

// Step returns the number of the current step. The caller must be in the core.
func (r *Runner) Step() int { return r.steps }

// EndTurn makes RunSome and RunTurn return after the current step. The caller must be in the core.
func (r *Runner) EndTurn() { r.budget = 0 }
