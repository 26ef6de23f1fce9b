package runner

import "github.com/braidgo/braid/internal/coro"

// help holds the state of helping. A task that parks runs the next tasks itself, on its own goroutine, until its own
// turn comes again. Then the task continues without a switch. If two tasks wake each other, each round takes two
// switches instead of four:
//
//	scheduler --> A            without           scheduler --> A            with helping
//	scheduler <-- A parks                                      A parks, and helps:
//	scheduler --> B            wakes A                         A --> B      wakes A
//	scheduler <-- B parks                                      A <-- B parks
//	scheduler --> A                                            A goes on
//
// Only a task that the scheduler's goroutine has resumed helps; the tasks that the helper resumes switch back to it. A
// helper makes no coroutines, because they must be made on the scheduler's goroutine. A task that has locked its thread
// does not help, because it cannot switch to another coroutine. When the budget is spent, the
// helper must switch to that goroutine, which has other duties. If nothing is runnable, the helper may sleep in the
// scheduler's place. Then a task that waits for another thread needs no switch at all.
type help struct {
	helper *Task // the task that helps, or nil while the scheduler's goroutine runs the tasks
	helped *Task // the task that the helper has switched to, or nil if the helper has slept

	sleeper sleeper // set before the first Run; a nil sleeper means that no helper sleeps
}

// A sleeper lets helpers sleep in the scheduler's place. helpSleep returns the switch for that, or nil if there is
// something else to do.
type sleeper interface{ helpSleep() coro.Next }

// park begins to park t, and returns the switch that t must make, if any.
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

// yield puts t at the end of the list, and returns the switch that t must make, if any.
func (r *Runner) yield(t *Task) (next coro.Next, yield coro.Yield) {
	yield = t.Coroutine.Leave(coro.Yielded)
	if r.lease != nil {
		return nil, yield
	}
	r.put(&t.Item)
	return r.helpOr(t, yield)
}

// helpOr makes t, which is parked or queued, the helper if possible. Otherwise t switches back to the goroutine that
// resumed it.
func (r *Runner) helpOr(t *Task, yield coro.Yield) (coro.Next, coro.Yield) {
	h := &r.help
	if !r.InOrder || h.helper != nil || r.budget <= 1 || h.sleeper == nil && r.Empty() || t.Locked() {
		return nil, yield
	}
	h.helper = t
	return r.helpOn()
}

// back lets the helper continue when its sleep has ended, or when the task that it switched to has given control back.
func (r *Runner) back() (coro.Next, coro.Yield) {
	if t := r.help.helped; t != nil {
		r.left(t)
	}
	return r.helpOn()
}

// helpOn chooses the helper's next action: to switch to another task, to sleep, to continue its own task, or to switch
// to the scheduler.
func (r *Runner) helpOn() (coro.Next, coro.Yield) {
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

// endHelp ends the helping and returns the switch to the scheduler's goroutine.
func (r *Runner) endHelp() (coro.Next, coro.Yield) {
	t := r.help.helper
	r.help.helper = nil
	return nil, t.Switch()
}
