package simulation

import (
	"context"
	"runtime/debug"
	"slices"

	"github.com/braidgo/braid/internal/labels"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/suspend"
)

// A ready is something to run: a task to go on, one to begin, or a callback.
type ready struct {
	host *host
	task *task  // the task to go on; nil means that f runs
	f    func() // the function of a task to begin, or a callback
	as   *way   // nil means that f is a task
}

// A way is how f of a ready is called. It is apart, as each step copies a ready.
type way struct {
	gone func() // is called if the task f does not begin
	by   *guest // the guest whose call the task f does
}

var callback = new(way)

// run implements Run.
func (w *World) run(main func(ctx context.Context, w *World) error) {
	if w.fleet = w.o.fleet; w.fleet == nil {
		w.fleet = newFleet(w.o)
		defer w.fleet.stop()
	}
	if w.err = w.arrive(); w.err != nil {
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
		defer w.leave()
		if w.guests == nil {
			w.ready = append(w.ready, ready{host: &w.host, f: first})
		} else {
			w.guests.start(&w.host, first)
		}
		w.loop()
	})
}

// loop is the whole scheduler: a step, or else the next timer, or else a sleep. It switches to the task itself, since after a switch the
// processor predicts no return correctly.
func (w *World) loop() {
	for !w.over {
		w.notice()
		switch {
		case w.called.Load():
			w.admit()
		case w.steps >= w.o.MaxSteps:
			w.fail(w.account(ErrSteps))
		case len(w.ready) > 0:
			if t := w.next(); t != nil {
				w.current = t
				w.fleet.stalls.Begin()
				t.Next()()
				w.current = nil
				w.fleet.left(t)
			}
			w.settle()
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

// verify checks the invariants.
func (w *World) verify() {
	for _, holds := range w.always {
		w.hold(holds)
	}
}

// hold checks an invariant.
func (w *World) hold(holds func() error) {
	w.call(func() {
		if err := holds(); err != nil {
			w.fail(err)
		}
	})
}

// next picks one of all that is ready, each as likely as any other. It returns the task to switch to, nil if it has done the step itself.
func (w *World) next() *task {
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
		w.call(r.f)
		return nil
	case t == nil:
		t, kind = w.fleet.begin(w, h, r.f), begun
		if t.by = nil; r.as != nil {
			t.by = r.as.by
		}
	}
	w.note(event{kind: kind, quiet: t.by != nil, host: h, task: t.id, n: n})
	return t
}

// resume is the switch of loop, for Crash, which runs other tasks from within a step.
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

// caller returns the task that runs, or the guest, whose number is negative; nil and 0 mean a timer, a segment or a callback.
func (w *World) caller() (*host, int) {
	if t := w.current; t != nil {
		if t.by != nil {
			return t.host, -t.by.n
		}
		return t.host, t.id
	}
	return w.acting.host, -w.acting.n
}

// call calls a callback, on the goroutine of Run, where suspending is forbidden.
func (w *World) call(f func()) {
	defer labels.Here().Put() // restores the labels of the caller of Run, which f must not begin with
	labels.Clear()
	defer func() {
		if v := recover(); v != nil {
			w.panicked(v, debug.Stack())
		}
	}()
	f()
}

// fail ends the run. The first reason stays. It replaces what main has returned in the same step.
func (w *World) fail(err error) {
	if !w.failed {
		w.err, w.failed, w.over = err, true, true
	}
}

// mainEnded ends the run, unless it has failed.
func (w *World) mainEnded(err error) {
	if w.ended = true; !w.failed {
		w.err, w.over = err, !w.o.open
	}
}

// leave ends all that is left.
func (w *World) leave() {
	w.over, w.leaving = true, true
	w.close()
	w.endTasks(w.hosts...)
	for _, h := range w.hosts { // no task is left to end a wait under a Shield
		for n := h.tasks.First(); n != nil; n = n.Next() {
			n.Value.Unshield()
		}
	}
	w.endTasks(w.hosts...)
	for _, t := range w.watches { // a context may live for longer
		t.stop()
	}
	w.ready, w.timers, w.always, w.watches = nil, timers{}, nil, nil // a connection may be kept, and so is the World
	w.fleet.stalls.End()
}

// endTasks ends the tasks of hosts, here and now, but a task that is in a Crash itself ends when it comes back. A defer may wait for
// another task that ends. If none of them can go on, or they do not come to an end, the waits are ended again.
func (w *World) endTasks(hosts ...*host) {
	for _, h := range hosts {
		w.ready = append(w.ready, h.held...)
		h.held = nil
	}
	for left := 1; left > 0; {
		left = w.kill(hosts...)
		for turns := 64 * (left + 1); turns > 0 && w.turn(hosts); turns-- {
		}
	}
	w.ready = slices.DeleteFunc(w.ready, func(r ready) bool { return r.task == nil && slices.Contains(hosts, r.host) && r.drop() })
}

// drop says that r will not run.
func (r ready) drop() bool {
	if r.as != nil && r.as != callback {
		r.as.gone()
	}
	return true
}

// kill ends the waits of the tasks of hosts, or the next wait of a task that does not wait. The tasks end in their turn. It returns how
// many will have a turn: a task that is in a Crash has none until it comes back. It does not count a task under a Shield, which waits for a
// task elsewhere, and ends after its wait.
func (w *World) kill(hosts ...*host) (left int) {
	for _, h := range hosts {
		for n := h.tasks.First(); n != nil; n = n.Next() {
			t := n.Value
			if t.Kill(); t.mark == parked { // a goroutine outside has ended its wait, and was not let in to wake it
				w.rouse(t)
			}
			if !t.Shielded() && !w.running(func(r *task) bool { return r == t }) {
				left++
			}
		}
	}
	return left
}

// running reports whether is holds for the task that runs, or for a task that has resumed it in a Crash.
func (w *World) running(is func(t *task) bool) bool {
	for t := w.current; t != nil; t = t.under {
		if is(t) {
			return true
		}
	}
	return false
}

// turn runs a ready task of hosts, or drops a function of hosts that has not begun. It reports whether there was one or the other.
func (w *World) turn(hosts []*host) bool {
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
