package runner

import (
	"github.com/braidgo/braid/internal/coro"
	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/internal/labels"
	"github.com/braidgo/braid/internal/prefetch"
	"github.com/braidgo/braid/suspend"
)

// This file implements the steps of a Runner, on its own goroutine or on a helper's.

// Run runs an Item until it ends, suspends or yields. The caller must be on the scheduler's goroutine.
func (r *Runner) Run(it *Item) {
	r.budget = 1
	r.drive(it)
}

// RunSome runs a limited number of runnable Items, in order, and reports whether there were any.
func (r *Runner) RunSome() bool {
	it := r.Next()
	if it == nil {
		return false
	}
	r.budget = publishing
	r.drive(it)
	return true
}

// drive runs an Item and the Items after it, in order, until the budget is spent.
func (r *Runner) drive(it *Item) {
	for it != nil {
		t := r.resumed(it)
		r.stalls.Begin()
		t.Next()()
		r.left(t)
		if r.budget <= 0 {
			return
		}
		it = r.Next()
	}
}

// resumed returns the task that the caller must switch to: the task of a runnable Item, or the task in which a new Item
// begins.
func (r *Runner) resumed(it *Item) *Task {
	r.countStep()
	if r.suspended > prefetch.Crowd {
		r.ahead()
	}
	if it.isNew() {
		return r.startItem(it)
	}
	t := it.task
	if t.Why() == coro.Parked {
		r.wakes++
		r.suspended--
	}
	return t
}

// ahead prefetches the data of the next task, and the addresses of the data of the task after it.
func (r *Runner) ahead() {
	it := r.list.first
	if it == nil {
		return
	}
	if !it.isNew() {
		it.task.Fetch()
	}
	if it.next != nil {
		prefetch.Lines(it.next)
	}
}

// left counts the step of t, which has given control back, and calls r.ended if the task has ended. A task that parks
// or yields updates its state itself.
func (r *Runner) left(t *Task) {
	if t.Why() >= coro.Ended {
		r.ended(t)
	}
	r.budget--
}

// startItem puts a new task, or a callback, on a coroutine.
func (r *Runner) startItem(it *Item) (t *Task) {
	if t = r.idleTask(); t == nil {
		t = newTask(r)
		r.add(t)
	}
	r.busy++
	if t.calls = it.task == callback; t.calls {
		t.Item.f = r.free.put(it)
		if r.callFn == nil {
			r.callFn = r.runCalls
		}
		t.Start(r.callFn)
	} else {
		t.Start(r.free.put(it))
	}
	return t
}

// idleTask removes and returns an idle coroutine, or returns nil if there is none.
func (r *Runner) idleTask() *Task {
	n := len(r.idle)
	if n == 0 && r.shares != no && r.busy >= fewTasks {
		if r.shares == unknown {
			if r.shares = no; ordinary() {
				r.shares = yes
			}
		}
		if r.shares == yes {
			r.idle = kept.withdraw(r.idle, keptBatch)
			n = len(r.idle)
			for _, t := range r.idle {
				r.add(t)
			}
		}
	}
	if n == 0 {
		return nil
	}
	t := r.idle[n-1]
	r.idle[n-1] = nil
	r.idle = r.idle[:n-1]
	if r.busy > prefetch.Crowd {
		fetchIdle(r.idle)
	}
	if t.runner.Load() != r {
		t.runner.Store(r)
		t.WatchedBy(r.stalls)
	}
	return t
}

// fetchIdle is like the method ahead, for the idle coroutines on which the next new tasks begin.
func fetchIdle(idle []*Task) {
	if n := len(idle); n > 1 {
		idle[n-1].Fetch()
		prefetch.Lines(idle[n-2])
	}
}

// ended removes a coroutine whose task has exited. If the task has ended otherwise, the coroutine becomes idle. The
// Runner keeps as many idle coroutines as it has busy coroutines, because a burst of new tasks tends to follow a burst
// of ends.
func (r *Runner) ended(t *Task) {
	if !t.calls {
		r.live.Leave()
	}
	r.busy--
	if t.Why() == coro.Exited {
		r.remove(t)
		t.Reap()
	} else {
		r.idle = append(r.idle, t)
	}
	n := max(alwaysKept, r.busy)
	if r.shares == yes {
		n += keptBatch
	}
	if len(r.idle) > n {
		r.keep(max(alwaysKept, r.busy)) // keep handles at most two coroutines, unless the Runner shares the cache
	}
}

// keep gives idle coroutines to the cache, or stops them, until n are left.
func (r *Runner) keep(n int) {
	if r.shares == yes && len(r.idle) > n {
		left := len(r.idle) - kept.give(r.idle[n:], r.remove)
		clear(r.idle[left:])
		r.idle = r.idle[:left]
	}
	for last := len(r.idle) - 1; last >= n; last-- {
		if last > prefetch.Crowd {
			r.idle[last-1].Fetch()
		}
		t := r.idle[last]
		r.idle[last] = nil
		r.idle = r.idle[:last]
		r.remove(t)
		t.Stop()
	}
}

// runCalls runs consecutive callbacks on one coroutine, so that they share the cost of the switch. A callback that
// panics or exits ends only that coroutine.
func (r *Runner) runCalls() {
	r.calling.Store(gid.Get())
	defer r.calling.Store(0)
	t := suspend.Current().(*Task)
	f := t.Item.f
	t.Item.f = nil
	suspend.Bind(nil, func() {
		for r.runCallback(f); !t.Locked(); r.runCallback(f) {
			if f = r.nextOf(callback); f == nil {
				break
			}
		}
	})
}

func (r *Runner) runCallback(f func()) {
	defer r.live.Leave()
	f()
	labels.Clear() // otherwise the next callback would inherit the labels
}

// nextNew takes the next Item if it is a new task. The coroutine of a task that has ended begins the new task, without
// the two switches through the scheduler.
func (r *Runner) nextNew() (f func()) {
	if f = r.nextOf(nil); f != nil {
		r.live.Leave()
	}
	return f
}

// nextOf takes the next Item if it is of the given kind, and returns its function. It is called by a coroutine that has
// just ended an Item. Each call that takes an Item counts as a step, so a coroutine that always begins another Item
// does not hold up the scheduler.
func (r *Runner) nextOf(kind *Task) (f func()) {
	if !r.claim() {
		return nil
	}
	if it := r.another(kind); it != nil {
		f = r.free.put(it)
	}
	r.exit()
	return f
}

// another removes and returns the Item for nextOf, or returns nil. The caller must be in the core.
func (r *Runner) another(kind *Task) *Item {
	if !r.InOrder || r.budget <= 1 || r.lease != nil && r.lease.caution.careful() {
		return nil
	}
	if r.list.first == nil {
		r.drain()
	}
	if it := r.list.first; it == nil || it.task != kind {
		return nil
	}
	r.steps++
	r.budget--
	r.stalls.Begin()
	return r.list.pop()
}
