package simulation

import (
	"fmt"
	"runtime/debug"

	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/suspend"
)

// This file tells the World's own goroutines from others, and lets the calls of others in: such a call waits until the World admits it, and
// ends a sleep of the World.

// on reports whether the caller is on the World, that is, on the World's own goroutine or in the running task. Where suspending is
// forbidden, as in a transaction, no task is bound, but the id of the goroutine identifies the task.
func (w *World) on() bool {
	t, ok := suspend.Current().(*task)
	if ok && t.world.Load() == w {
		return true
	}
	id := gid.Get()
	if ok || id == w.driver {
		return id == w.driver
	}
	t = w.fleet.find(id)
	return t != nil && t.world.Load() == w
}

// find returns the task on the goroutine with this id, or nil if there is none.
func (l *fleet) find(id int64) *task {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := l.all.First(); n != nil; n = n.Next() {
		if n.Value.ID() == id {
			return n.Value
		}
	}
	return nil
}

// own reports whether the caller is on the World. If the caller is elsewhere, the run ends. Unlike tasks.beginCall, this method must not end
// the calling task: a Select calls the clock and the timers while it holds guards, or after it has taken a lock or a value.
func (w *World) own() bool {
	if !w.on() {
		_ = w.fromOutside(ready{})
		return false
	}
	return true
}

// fromOutside submits r on behalf of a goroutine outside the World. The zero value of r stands for a call that is only allowed to the World's
// own tasks; it is never admitted.
func (w *World) fromOutside(r ready) error {
	if w.guests != nil {
		return w.guests.fromOutside(r)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return errOver
	}
	own := r.host == nil && r.task == nil
	if own || !w.admits {
		stack := debug.Stack()
		hint, stock := cause(stack)
		if own || !w.o.Bubble || !stock {
			if w.foreign == nil {
				w.foreign = fmt.Errorf("simulation: %w: %s\n%s", ErrForeign, hint, stack)
				w.called.Store(true)
			}
			return ErrForeign
		}
	}
	w.in = append(w.in, r)
	w.called.Store(true)
	if w.asleep {
		w.asleep = false
		w.parent.Unpark()
	}
	return nil
}

// letIn accepts a call from outside the World.
func (r ready) letIn(w *World) {
	switch t := r.task; {
	case t == nil:
		w.ready = append(w.ready, r)
	case t.mark == parked:
		t.rouse()
	default:
		t.mark = woken
	}
}

// rouse makes a parked task ready.
func (t *task) rouse() {
	w := t.host.world
	t.mark = active
	host, id := w.caller()
	w.note(event{kind: wakes, quiet: t.by != nil, host: host, task: id, of: &t.host.place, n: t.id})
	w.ready = append(w.ready, ready{host: t.host, task: t})
}

// hostNumber returns the number of r's host, and r.number() returns the number of r's task.
func (r ready) hostNumber() int {
	if r.task != nil {
		return r.task.host.at().number() // the number is 0 if the task has ended
	}
	return r.host.at().number()
}

func (r ready) number() int {
	if r.task == nil {
		return 0
	}
	return r.task.id
}

// checkContexts makes the World check whether contexts have ended, even if the World is about to sleep.
func (w *World) checkContexts() {
	w.called.Store(true)
	if g := w.guests; g != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.touch()
		return
	}
	w.rouseSelf()
}

// fallAsleep begins a sleep, which ends with a call from outside the World or with the alarm. If a call is already waiting, the World does
// not sleep.
func (x *outside) fallAsleep() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.admits = true
	x.asleep = !x.called.Load()
}

// park parks Run's caller until the sleep ends.
func (x *outside) park() {
	for x.sleeps() {
		x.parent.Park()
	}
}

func (x *outside) sleeps() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.asleep
}

func (x *outside) rouseSelf() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.asleep {
		x.asleep = false
		x.parent.Unpark()
	}
}

// shut makes the World refuse all further calls, unless a call is already waiting. It reports whether the World is closed.
func (x *outside) shut() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = len(x.in) == 0
	return x.closed
}

// close makes the World refuse all further calls from outside it. It returns the error of the first call that was not allowed.
func (x *outside) close() (foreign error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	x.in = nil
	return x.foreign
}
