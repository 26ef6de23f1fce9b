package coro

import (
	"unsafe"

	"github.com/braidgo/braid/internal/prefetch"
	"github.com/braidgo/braid/suspend"
)

// The steps of a Runner: what it does with an Item, on its own goroutine or on that of a task which stands in.

// Run runs it, up to where it ends, suspends or yields. It is called on the scheduler's goroutine.
func (r *Runner) Run(it *Item) {
	r.budget = 1
	r.drive(it)
}

// RunSome runs some of what is runnable, in order, and reports whether there was anything.
func (r *Runner) RunSome() bool {
	it := r.Next()
	if it == nil {
		return false
	}
	r.budget = publishing
	r.drive(it)
	return true
}

// drive runs it and what comes after it in order, as far as the budget goes.
func (r *Runner) drive(it *Item) {
	for it != nil {
		t := r.enter(it)
		r.stalls.begin(t)
		t.next()
		r.left(t)
		if r.budget <= 0 {
			return
		}
		it = r.Next()
	}
}

// enter returns the task that it is, to be switched to, or one that begins with it.
func (r *Runner) enter(it *Item) *Task {
	if r.steps++; r.steps-r.shownAt >= publishing {
		r.publish()
	}
	t := it.task
	if r.suspended > prefetch.Crowd {
		r.ahead()
	}
	if t == nil || t == callback {
		return r.begin(it)
	}
	if t.why == Parked {
		r.wakes++
		r.suspended--
	}
	return t
}

// ahead has fetched what the next task needs to go on, and of the one after it what tells where that is.
func (r *Runner) ahead() {
	it := r.first
	if it == nil {
		return
	}
	if t := it.task; t != nil && t != callback {
		t.Fetch()
	}
	if it.next != nil {
		prefetch.Lines(unsafe.Pointer(it.next))
	}
}

// left deals with a task that has given control back.
func (r *Runner) left(t *Task) {
	switch {
	case t.departed:
		t.departed = false
	case t.why >= Ended:
		r.ended(t)
	case t.why == Yielded:
		r.put(&t.Item)
	case !t.commit():
		r.suspended++ // and woken by now
		r.put(&t.Item)
	default:
		r.suspended++
	}
	r.budget--
}

// mayStandIn reports whether a task that parks can run others meanwhile, or sleep until there are others. Only the one
// that the scheduler's goroutine has resumed can; those that it resumes in turn switch back to it.
func (r *Runner) mayStandIn() bool {
	return r.InOrder && r.standing == nil && r.budget > 1 && (r.doze != nil || !r.Empty())
}

// standIn has t, which is parked or queued, do on its own goroutine what drive does, until its turn has come: then it
// goes on without a switch, and two tasks that wake each other take two switches for a round and not four. When the
// budget is spent it has to switch to the scheduler's goroutine after all, which has other duties as well.
func (r *Runner) standIn(t *Task) (next Next, yield Yield) {
	r.standing = t
	return r.turn()
}

// turn says what the task that stands in is to do: switch to another, be it the scheduler's goroutine, sleep, or go on.
func (r *Runner) turn() (next Next, yield Yield) {
	self := r.standing
	if r.budget <= 0 {
		return r.depart(self)
	}
	it := r.Next()
	if it == nil {
		if r.doze != nil {
			if next = r.doze(); next != nil {
				r.running = nil
				r.budget = publishing
				return next, nil
			}
		}
		return r.depart(self)
	}
	if (it.task == nil || it.task == callback) && len(r.idle) == 0 { // coroutines are made on the scheduler's goroutine only
		r.putBack(it)
		return r.depart(self)
	}
	t := r.enter(it)
	r.stalls.begin(t)
	if t == self {
		r.budget--
		r.standing = nil
		return nil, nil
	}
	r.running = t
	return t.next, nil
}

// depart has t, which stands in no longer, switch to the scheduler's goroutine.
func (r *Runner) depart(t *Task) (next Next, yield Yield) {
	r.standing = nil
	t.departed = true
	return nil, t.yield
}

// putBack makes it the first, again.
func (r *Runner) putBack(it *Item) {
	if it.next = r.first; it.next == nil {
		r.last = it
	}
	r.first = it
}

// begin puts a new task, or callbacks, on a coroutine.
func (r *Runner) begin(it *Item) (t *Task) {
	if n := len(r.idle); n > 0 {
		t, r.idle[n-1] = r.idle[n-1], nil
		r.idle = r.idle[:n-1]
	} else {
		t = New(r)
	}
	r.busy++
	if t.calls = it.task == callback; t.calls {
		r.calls = it
		t.Start(r.runCalls)
	} else {
		t.Start(r.take(it))
	}
	return t
}

// ended deals with a coroutine whose task has ended. As many are kept for others as have tasks: where many end at once, as
// many may begin.
func (r *Runner) ended(t *Task) {
	if !t.calls {
		r.live.Add(-1)
	}
	r.busy--
	if t.why == Exited {
		t.reap()
	} else {
		r.idle = append(r.idle, t)
	}
	r.keep(max(alwaysKept, r.busy)) // which stops two at most
}

// keep stops the coroutines that are idle, but for n.
func (r *Runner) keep(n int) {
	for last := len(r.idle) - 1; last >= n; last-- {
		if last > prefetch.Crowd {
			r.idle[last-1].Fetch()
		}
		t := r.idle[last]
		r.idle[last] = nil
		r.idle = r.idle[:last]
		t.Stop()
	}
}

// runCalls runs callbacks, as many as come one after another, on a coroutine: it stands what a callback does
// to the goroutine that it runs on, and they share the cost of the switch.
func (r *Runner) runCalls() {
	suspend.Bind(nil, func() {
		it := r.calls
		r.calls = nil
		for it != nil {
			r.call(r.take(it))
			it = r.another(callback)
		}
	})
}

func (r *Runner) call(f func()) {
	defer r.live.Add(-1)
	f()
}

// nextNew takes the Item that is next in order if it is a task to begin: the coroutine of one that has ended begins it,
// without the two switches by way of whoever drives.
func (r *Runner) nextNew() (f func()) {
	it := r.another(nil)
	if it == nil {
		return nil
	}
	r.live.Add(-1)
	return r.take(it)
}

// another takes the Item that is next in order if it is of this kind, for the coroutine that has just ended one. It is a
// step as any other: who begins others for ever holds up nobody else.
func (r *Runner) another(kind *Task) *Item {
	if !r.InOrder || r.budget <= 1 {
		return nil
	}
	if r.first == nil {
		r.drain()
	}
	it := r.first
	if it == nil || it.task != kind {
		return nil
	}
	r.first = it.next
	r.steps++
	r.budget--
	r.stalls.another()
	return it
}
