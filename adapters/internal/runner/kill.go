package runner

import (
	"slices"

	"github.com/braidgo/braid/adapters/internal/coro"
)

// Ending tasks, and a Run that has tasks left.

// Kill ends t by runtime.Goexit where it waits, or where it waits next, see suspend.Bound. It is called on the Runner. t has
// begun and has not ended: its coroutine may have the next task by then. It reports false while an earlier Kill of t has not
// taken effect.
func (r *Runner) Kill(t *Task) bool { return t.Coroutine.Kill() }

// killAll kills every task, and reports whether a Kill has yet to take effect.
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

// unshieldAll ends the waits that no Kill ends, see suspend.Shield. It is called when nothing is runnable, and reports whether there was one.
func (r *Runner) unshieldAll() (found bool) {
	for _, t := range r.all {
		if t.Why() < coro.Ended && !t.calls && t.Coroutine.Unshield() {
			found = true
		}
	}
	return found
}

// abandon closes r though something is left: Holds, and tasks that no Kill ends, as they park by themselves.
func (r *Runner) abandon() { r.live.Abandon() }

// OnForeign sets a function to be called by a goroutine that is not the Runner's and begins something on it, or wakes one of
// its tasks: before that takes effect, and under locks. It must not block. It is set before the first Run.
func (r *Runner) OnForeign(f func()) { r.foreign = f }

// End ends the Run although tasks are left, as after a deadlock. It kills all tasks that have begun, and kills them again
// when nothing is runnable, since a deferred function may wait, until none is left. Holds are dropped. Drive then returns
// err if its main was killed. End is called on the Runner.
func (d *Driven) End(err error) {
	d.ending, d.alone, d.err = true, true, err
	d.killAll()
}

// add makes t, which is new or comes from the cache, one of the Runner's coroutines.
func (r *Runner) add(t *Task) {
	t.at = int32(len(r.all))
	r.all = append(r.all, t)
}

// remove is the end of add. The goroutine of t is no longer the Runner's.
func (r *Runner) remove(t *Task) {
	r.own(t.ID()).CompareAndSwap(t.ID(), 0)
	last := len(r.all) - 1
	moved := r.all[last]
	r.all[t.at], moved.at, r.all[last] = moved, t.at, nil
	r.all = r.all[:last]
}
