package simulation

import (
	"context"
	"runtime/debug"
	"slices"

	"github.com/braidgo/braid/internal/labels"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/suspend"
)

// A ready is an entry of World.ready: a task to resume, a task to begin, or a callback.
type ready struct {
	host *host
	task *task  // the task to resume, or nil if f is to run
	f    func() // the function of a task to begin, or a callback
	as   *way   // how f is called; nil for an ordinary task
}

// A way says how the function f of a ready is called. It is a separate struct because each step copies a value of type ready.
type way struct {
	gone func() // called if the task is dropped before it begins
	by   *guest // the guest whose call the task executes
}

var callback = new(way)

// run implements Run.
func (w *World) run(main func(ctx context.Context, w *World) error) {
	if w.fleet = w.o.fleet; w.fleet == nil {
		w.fleet = newFleet(w.o)
		defer w.fleet.stop()
	}
	if w.err = w.prepare(); w.err != nil {
		return
	}
	if w.o.Preempt {
		defer preempt.Begin()()
	}
	first := func() {
		err := ErrExited
		defer func() {
			if err == ErrExited {
				err = exit()
			}
			w.do(func() { w.mainEnded(err) })
		}()
		err = main(context.Background(), w)
	}
	suspend.Bind(nil, func() {
		defer w.tearDown()
		if w.guests == nil {
			w.ready = append(w.ready, ready{host: &w.host, f: first})
		} else {
			w.guests.start(&w.host, first)
		}
		w.loop()
	})
}

// loop is the scheduler. Each round runs a step, fires timers or sleeps. The switch to a task is in this function itself, because after a
// switch the processor mispredicts all returns.
func (w *World) loop() {
	for !w.over {
		w.notice()
		switch {
		case w.called.Load():
			w.admit()
		case w.steps >= w.o.MaxSteps:
			w.fail(w.account(ErrSteps))
		case len(w.ready) > 0:
			if t := w.pickReady(); t != nil {
				w.current = t
				w.fleet.stalls.Begin()
				t.Next()()
				w.current = nil
				w.fleet.left(t)
			}
			w.waitForBubble()
		case w.o.MaxTime > 0 && w.now > w.o.MaxTime:
			w.fail(w.account(ErrTime))
		case w.due():
			w.advance()
		default:
			w.sleep()
		}
		w.verify()
	}
}

// verify calls all functions that were passed to Always.
func (w *World) verify() {
	for _, holds := range w.always {
		w.hold(holds)
	}
}

// hold calls a function that was passed to Always, and fails the run if this function returns an error.
func (w *World) hold(holds func() error) {
	w.runCallback(func() {
		if err := holds(); err != nil {
			w.fail(err)
		}
	})
}

// pickReady removes an entry from w.ready, and picks each entry with the same probability. If the entry is a task that can run, it returns
// the task. Otherwise it handles the entry itself, and returns nil.
func (w *World) pickReady() *task {
	n := len(w.ready)
	i := w.order.below(n)
	r := w.ready[i]
	w.ready[i] = w.ready[n-1]
	w.ready[n-1] = ready{}
	w.ready = w.ready[:n-1]
	h, t := r.host, r.task
	switch {
	case h.paused:
		h.held = append(h.held, r)
		return nil
	case t == nil && h.dead:
		r.drop()
		return nil
	}
	w.steps++
	kind := resumed
	switch {
	case r.as == callback:
		w.note(event{kind: called, host: h, n: n})
		w.runCallback(r.f)
		return nil
	case t == nil:
		t, kind = w.fleet.startTask(w, h, r.f), begun
		if t.by = nil; r.as != nil {
			t.by = r.as.by
		}
	}
	w.note(event{kind: kind, quiet: t.by != nil, host: h, task: t.id, n: n})
	return t
}

// resume switches to t during a step. Crash runs other tasks this way.
func (w *World) resume(t *task) {
	t.under, w.current = w.current, t
	w.fleet.stalls.Begin()
	t.Next()()
	w.current, t.under = t.under, nil
	w.fleet.left(t)
}

// rouse makes a parked task ready.
func (w *World) rouse(t *task) {
	t.mark = active
	host, id := w.caller()
	w.note(event{kind: wakes, quiet: t.by != nil, host: host, task: id, of: t.host, n: t.id})
	w.ready = append(w.ready, ready{host: t.host, task: t})
}

// caller returns the host and number of the running task, or of the calling guest, whose number is negative. For a timer, a segment or a
// callback it returns nil and 0.
func (w *World) caller() (*host, int) {
	if t := w.current; t != nil {
		if t.by != nil {
			return t.host, -t.by.n
		}
		return t.host, t.id
	}
	return w.acting.host, -w.acting.n
}

// runCallback calls the callback f on Run's goroutine, where suspending is forbidden.
func (w *World) runCallback(f func()) {
	defer labels.Here().Put() // restores the labels of Run's caller, which f must not inherit
	labels.Clear()
	defer func() {
		if v := recover(); v != nil {
			w.panicked(v, debug.Stack())
		}
	}()
	f()
}

// fail ends the run with err. Only the first call has an effect. Its error replaces the result of main, if main has returned in the same
// step.
func (w *World) fail(err error) {
	if !w.failed {
		w.err, w.failed, w.over = err, true, true
	}
}

// mainEnded ends the run with main's error, unless the run has failed.
func (w *World) mainEnded(err error) {
	if w.ended = true; !w.failed {
		w.err, w.over = err, !w.o.open
	}
}

// tearDown ends all remaining tasks, and releases the memory of the run.
func (w *World) tearDown() {
	w.over, w.tearingDown = true, true
	w.close()
	w.endTasks(w.hosts...)
	for _, h := range w.hosts { // no task is left that could end a wait under a Shield
		for n := h.tasks.First(); n != nil; n = n.Next() {
			n.Value.Unshield()
		}
	}
	w.endTasks(w.hosts...)
	for _, t := range w.watches { // a context may outlive the run
		t.stop()
	}
	w.ready, w.timers, w.always, w.watches = nil, timers{}, nil, nil // a connection that outlives the run keeps the World in memory
	w.fleet.stalls.End()
}

// endTasks ends the tasks of hosts before it returns, except a task that is calling Crash, which ends when the Crash returns. A deferred
// function may wait for another task that is ending. If none of the tasks can run, or if they do not end, endTasks ends their waits again.
func (w *World) endTasks(hosts ...*host) {
	for _, h := range hosts {
		w.ready = append(w.ready, h.held...)
		h.held = nil
	}
	for left := 1; left > 0; {
		left = w.kill(hosts...)
		for turns := 64 * (left + 1); turns > 0 && w.runReady(hosts); turns-- {
		}
	}
	w.ready = slices.DeleteFunc(w.ready, func(r ready) bool { return r.task == nil && slices.Contains(hosts, r.host) && r.drop() })
}

// drop discards r, which will not run. It always returns true, as slices.DeleteFunc needs.
func (r ready) drop() bool {
	if r.as != nil && r.as != callback {
		r.as.gone()
	}
	return true
}

// kill makes each task of hosts end at its current wait, or else at its next wait. Each task ends when it runs again. kill returns the
// number of tasks that can run. A task that is calling Crash does not count, because it cannot run before the Crash returns. A task under a
// Shield does not count, because it ends only after its wait for a task elsewhere.
func (w *World) kill(hosts ...*host) (left int) {
	for _, h := range hosts {
		for n := h.tasks.First(); n != nil; n = n.Next() {
			t := n.Value
			if t.Kill(); t.mark == parked { // a goroutine outside the World has ended the wait of t, but its call of t.Unpark was refused
				w.rouse(t)
			}
			if !t.Shielded() && !w.running(func(r *task) bool { return r == t }) {
				left++
			}
		}
	}
	return left
}

// running reports whether is(t) is true for the running task t, or for a task t that is calling Crash.
func (w *World) running(is func(t *task) bool) bool {
	for t := w.current; t != nil; t = t.under {
		if is(t) {
			return true
		}
	}
	return false
}

// runReady runs a ready task of hosts, or drops a function of hosts that has not begun. It returns false if there is no such task or
// function.
func (w *World) runReady(hosts []*host) bool {
	for i, r := range w.ready {
		if slices.Contains(hosts, r.host) {
			w.ready = slices.Delete(w.ready, i, i+1)
			if r.task != nil {
				w.resume(r.task)
			} else {
				r.drop()
			}
			return true
		}
	}
	return false
}
