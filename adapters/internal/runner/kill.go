package runner

import (
	"slices"

	"github.com/braidgo/braid/internal/coro"
)

// This file contains the functions that end tasks, and Runs that still have tasks.

// killAll kills all tasks, and reports whether it killed any. A task does not count if an earlier Kill has not taken
// effect.
func (r *Runner) killAll() (found bool) {
	for _, t := range r.all {
		if t.Why() < coro.Ended && !t.calls && t.Coroutine.Kill() {
			found = true
		}
	}
	return found
}

// shielded reports whether a task waits in a Shield.
func (r *Runner) shielded() bool {
	return slices.ContainsFunc(r.all, func(t *Task) bool { return t.Why() < coro.Ended && !t.calls && t.Shielded() })
}

// unshieldAll lifts all Shields, so that a Kill ends the waits in them; see suspend.Shield. It reports whether there
// was a Shield. It is called when nothing is runnable.
func (r *Runner) unshieldAll() (found bool) {
	for _, t := range r.all {
		if t.Why() < coro.Ended && !t.calls && t.Coroutine.Unshield() {
			found = true
		}
	}
	return found
}

// abandon closes r although work is left: Holds, and tasks that no Kill ends, because they call Park themselves.
func (r *Runner) abandon() { r.live.Abandon() }

// add adds t, which is new or comes from the cache, to the Runner's coroutines.
func (r *Runner) add(t *Task) {
	t.at = int32(len(r.all))
	r.all = append(r.all, t)
	r.coroutines.Store(int64(len(r.all)))
}

// remove undoes the call of add. The goroutine of t no longer belongs to the Runner.
func (r *Runner) remove(t *Task) {
	r.own(t.ID()).CompareAndSwap(t.ID(), 0)
	last := len(r.all) - 1
	moved := r.all[last]
	r.all[t.at], moved.at, r.all[last] = moved, t.at, nil
	r.all = r.all[:last]
	r.coroutines.Store(int64(last))
}
