package runner

import (
	"github.com/braidgo/braid/adapters/internal/coro"
	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/internal/labels"
	"github.com/braidgo/braid/internal/prefetch"
	"github.com/braidgo/braid/suspend"
)

// The steps of a Runner, on its own goroutine or a helper's.

// Run runs it, up to where it ends, suspends or yields. It is called on the scheduler's goroutine.
func (r *Runner) Run(it *Item) {
	r.budget = 1
	r.drive(it)
}

// RunSome runs some of the runnable Items, in order, and reports whether there were any.
func (r *Runner) RunSome() bool {
	it := r.Next()
	if it == nil {
		return false
	}
	r.budget = publishing
	r.drive(it)
	return true
}

// drive runs it and the Items after it in order, as far as the budget goes.
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

// resumed returns the task of it, to be switched to, or a task that begins with it.
func (r *Runner) resumed(it *Item) *Task {
	r.step()
	if r.suspended > prefetch.Crowd {
		r.ahead()
	}
	if it.isNew() {
		return r.begin(it)
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

// left deals with a task that has given control back. A task that parks or yields updates its state itself.
func (r *Runner) left(t *Task) {
	if t.Why() >= coro.Ended {
		r.ended(t)
	}
	r.budget--
}

// begin puts a new task, or callbacks, on a coroutine.
func (r *Runner) begin(it *Item) (t *Task) {
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

// idleTask takes an idle coroutine, nil if there is none.
func (r *Runner) idleTask() *Task {
	n := len(r.idle)
	if n == 0 && r.shares != no && r.busy >= fewTasks {
		if r.shares == unknown {
			if r.shares = no; ordinary() {
				r.shares = yes
			}
		}
		if r.shares == yes {
			r.idle = kept.take(r.idle, keptBatch)
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

// fetchIdle is ahead for the coroutines that take the next new tasks.
func fetchIdle(idle []*Task) {
	if n := len(idle); n > 1 {
		idle[n-1].Fetch()
		prefetch.Lines(idle[n-2])
	}
}

// ended deals with a coroutine whose task has ended. It keeps as many idle coroutines as there are busy coroutines,
// since a burst of beginnings tends to follow a burst of endings.
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
		r.keep(max(alwaysKept, r.busy)) // stops two at most, unless the cache takes them
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

// runCalls runs a row of callbacks on one coroutine. A callback that panics or exits ends only that coroutine, and the
// row shares the cost of the switch.
func (r *Runner) runCalls() {
	r.calling.Store(gid.Get())
	defer r.calling.Store(0)
	t := suspend.Current().(*Task)
	f := t.Item.f
	t.Item.f = nil
	suspend.Bind(nil, func() {
		for f != nil {
			r.call(f)
			f = r.nextOf(callback)
		}
	})
}

func (r *Runner) call(f func()) {
	defer r.live.Leave()
	f()
	labels.Clear() // the next callback of the row would have them otherwise
}

// nextNew takes the Item that is next in order if it is a task to begin: the coroutine of a task that has ended begins
// it, without the two switches by way of the scheduler.
func (r *Runner) nextNew() (f func()) {
	if f = r.nextOf(nil); f != nil {
		r.live.Leave()
	}
	return f
}

// nextOf is the entrance of a coroutine that has just ended an Item: it takes the Item that is next in order if it is of
// this kind, and returns its function. That is a step like any other: a coroutine that always begins another holds up nothing else.
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

// another is nextOf in the core.
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
	return r.list.take()
}
