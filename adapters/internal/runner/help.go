package runner

import "github.com/braidgo/braid/adapters/internal/coro"

// Helping. A task that parks runs the next tasks itself, on its own goroutine, until it is its turn again; then it goes
// on without a switch. Two tasks that wake each other take two switches for a round instead of four:
//
//	scheduler --> A            without           scheduler --> A            with helping
//	scheduler <-- A parks                                      A parks, and helps:
//	scheduler --> B            wakes A                         A --> B      wakes A
//	scheduler <-- B parks                                      A <-- B parks
//	scheduler --> A                                            A goes on
//
// Only the task that the scheduler's goroutine has resumed helps; the tasks that it resumes switch back to it. It makes
// no coroutines: they are made on the scheduler's goroutine. When the budget is spent it must switch to the scheduler's
// goroutine, which has other duties. Where nothing is runnable it may sleep for the scheduler: a task that waits for
// another thread then takes no switch at all.
type help struct {
	helper *Task // is nil while the scheduler's goroutine runs the tasks
	helped *Task // the task that the helper has switched to, nil if it has slept

	sleeper sleeper // set before the first Run; a nil sleeper means that no helper sleeps
}

// A sleeper returns the switch with which a helper sleeps for the scheduler, or nil if there is something else to do.
type sleeper interface{ helpSleep() coro.Next }

// park is the entrance of a task that parks.
func (r *Runner) park(t *Task) (next coro.Next, yield coro.Yield) {
	yield = t.Coroutine.Leave(coro.Parked)
	if r.lease != nil {
		return nil, yield
	}
	if t.Mark == woken {
		t.Mark = active
		return nil, nil
	}
	t.Mark = parked
	r.suspended++
	return r.helpOr(t, yield)
}

// yield is the entrance of a task that lets others have a turn.
func (r *Runner) yield(t *Task) (next coro.Next, yield coro.Yield) {
	yield = t.Coroutine.Leave(coro.Yielded)
	if r.lease != nil {
		return nil, yield
	}
	r.put(&t.Item)
	return r.helpOr(t, yield)
}

// helpOr makes t, which is parked or queued, the helper if it may be; else it switches to where it was resumed.
func (r *Runner) helpOr(t *Task, yield coro.Yield) (coro.Next, coro.Yield) {
	h := &r.help
	if !r.InOrder || h.helper != nil || r.budget <= 1 || h.sleeper == nil && r.Empty() {
		return nil, yield
	}
	h.helper = t
	return r.turn()
}

// back is the entrance of the helper when the task that it has switched to has given control back, or its sleep has
// ended.
func (r *Runner) back() (coro.Next, coro.Yield) {
	if t := r.help.helped; t != nil {
		r.left(t)
	}
	return r.turn()
}

// turn chooses the next action of the helper: switch to another task, sleep, go on itself, or switch to the scheduler.
func (r *Runner) turn() (coro.Next, coro.Yield) {
	h := &r.help
	if r.budget <= 0 {
		return r.endHelp()
	}
	it := r.Next()
	switch {
	case it == nil && h.sleeper != nil:
		if next := h.sleeper.helpSleep(); next != nil {
			h.helped = nil
			r.budget = publishing
			return next, nil
		}
		return r.endHelp()
	case it == nil:
		return r.endHelp()
	case it.isNew() && len(r.idle) == 0:
		r.list.prepend(it)
		return r.endHelp()
	}
	t := r.resumed(it)
	r.stalls.Begin()
	if t == h.helper {
		r.budget--
		h.helper = nil
		return nil, nil
	}
	h.helped = t
	return t.Next(), nil
}

// endHelp switches to the scheduler's goroutine.
func (r *Runner) endHelp() (coro.Next, coro.Yield) {
	t := r.help.helper
	r.help.helper = nil
	return nil, t.Switch()
}
