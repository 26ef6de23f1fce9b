package simulation

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/suspend"
)

// beginCall begins a call by a task or a guest, and reports whether the call is allowed. If the caller is a guest, it must end the call with
// guests.endCall.
func (w *World) beginCall() (guest, ok bool) {
	if g := w.guests; g != nil && !w.on() {
		g.beginCall()
		return true, true
	}
	return false, w.beginTaskCall()
}

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

// own reports whether the caller is on the World. If the caller is elsewhere, the run ends. Unlike beginTaskCall, this method must not end
// the calling task: a Select calls the clock and the timers while it holds guards, or after it has taken a lock or a value.
func (w *World) own() bool {
	if !w.on() {
		_ = w.fromOutside(ready{})
		return false
	}
	return true
}

// beginTaskCall begins a call by one of the World's own tasks or callbacks, and reports whether the caller is on the World. If the calling
// task was killed, or if the run has failed, this task ends.
func (w *World) beginTaskCall() bool {
	if !w.own() {
		return false
	}
	if t := w.current; t != nil {
		if w.over && !w.tearingDown {
			runtime.Goexit() // otherwise the task may retry forever without waiting
		}
		t.ExitIfKilled()
	}
	return true
}

// fromOutside submits r on behalf of a goroutine outside the World. The zero value of r stands for a call that only the World's own tasks
// may make; it is never admitted.
func (w *World) fromOutside(r ready) error {
	if w.guests != nil {
		return w.guests.fromOutside(r)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return suspend.ErrClosed
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

// post calls f on the World. A guest does not wait for the call.
func (w *World) post(f func()) {
	switch guest, ok := w.beginCall(); {
	case guest:
		defer w.guests.endCall()
		w.guests.ask(nil, f)
	case ok:
		f()
	}
}

// do calls f on the World, and waits until f returns.
func (w *World) do(f func()) {
	switch g := w.guests; {
	case g != nil && !w.on():
		g.call(context.Background(), nil, func(done func()) { f(); done() })
	case w.beginTaskCall():
		f()
	}
}
