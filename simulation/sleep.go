package simulation

import (
	"bytes"
	"cmp"
	"errors"
	"runtime"
	"slices"
	"testing/synctest"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/suspend"
)

// prepare prepares w for a run. Run calls it first, on its own goroutine.
func (w *World) prepare() error {
	w.driver = gid.Get()
	if !w.o.Start.IsZero() && (w.o.Bubble || w.guests != nil && !w.o.Start.Equal(time.Now())) { // inGuests has slept until Start, if Start is after 2000
		return errors.New("simulation: Options.Start is set, and in a bubble the clock is that of the bubble")
	}
	if w.o.Bubble && bubbleOf() == "" {
		return errors.New("simulation: Options.Bubble is set, and the caller is in no testing/synctest bubble")
	}
	if w.admits = w.o.open; w.o.open || w.o.Bubble || w.guests != nil {
		w.stock, w.begun = true, time.Now()
		w.start = w.begun
	}
	if w.o.open || w.o.Bubble {
		w.parent = suspend.Self()
	}
	return nil
}

// sleep parks Run's caller until a goroutine outside the World calls, or until the alarm for the World's next timer rings. In a bubble, a
// timer of package time may cause such a call. If nothing can happen any more, the run fails with ErrDeadlock.
func (w *World) sleep() {
	switch {
	case w.guests != nil:
		w.guests.sleep()
		return
	case w.parent == nil:
		w.stuck()
		return
	case w.o.open && w.ended && w.idle():
		w.over = w.shut()
		return
	}
	w.fallAsleep()
	var rang atomicx.Bool
	d := w.alarm()
	defer time.AfterFunc(d, func() { // set after fallAsleep, otherwise the alarm could ring while the World is awake
		rang.Store(true)
		w.rouseSelf()
	}).Stop()
	w.park()
	if w.o.Bubble {
		synctest.Wait()
	}
	w.mu.Lock()
	w.admits = w.o.open
	w.mu.Unlock()
	if len(w.timers.heap) == 0 && rang.Load() && !w.called.Load() {
		w.stuck()
		return
	}
	w.pass()
	w.admit()
}

// stuck fails the run with ErrDeadlock, unless a goroutine outside the World has just called.
func (w *World) stuck() {
	if !w.called.Load() {
		w.fail(w.account(ErrDeadlock))
	}
}

// fallAsleep begins a sleep, which ends with a call from outside the World or with the alarm. If a call is already waiting, the World does
// not sleep.
func (w *World) fallAsleep() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.admits = true
	w.asleep = !w.called.Load()
}

// park parks Run's caller until the sleep ends.
func (w *World) park() {
	for w.sleeps() {
		w.parent.Park()
	}
}

func (w *World) sleeps() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asleep
}

// admit accepts the queued calls from outside the World. It sorts these calls by host and task. The order of arrival must not matter,
// otherwise the seed would not repeat.
func (w *World) admit() {
	if !w.called.Load() {
		return
	}
	if w.guests != nil {
		w.called.Store(false)
		w.guests.executeCalls()
		return
	}
	w.mu.Lock()
	in, foreign := w.in, w.foreign
	w.in = nil
	w.called.Store(false)
	w.mu.Unlock()
	if foreign != nil {
		w.fail(foreign)
		return
	}
	if !w.o.open {
		slices.SortStableFunc(in, func(a, b ready) int {
			return cmp.Or(cmp.Compare(a.place(), b.place()), cmp.Compare(a.number(), b.number()))
		})
	}
	for _, r := range in {
		w.letIn(r)
	}
}

func (w *World) letIn(r ready) {
	switch t := r.task; {
	case t == nil:
		w.ready = append(w.ready, r)
	case t.mark == parked:
		w.rouse(t)
	default:
		t.mark = woken
	}
}

// place returns the number of r's host, and r.number() returns that of r's task.
func (r ready) place() int {
	if r.task != nil {
		return r.task.host.number() // the number is 0 if the task has ended
	}
	return r.host.number()
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

func (w *World) rouseSelf() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asleep {
		w.asleep = false
		w.parent.Unpark()
	}
}

// idle reports whether no task, hold or callback is left.
func (w *World) idle() bool {
	for _, h := range w.hosts {
		if h.tasks.First() != nil || h.holds.First() != nil {
			return false
		}
	}
	return len(w.ready) == 0
}

// shut makes the World refuse all further calls, unless a call is already waiting. It reports whether the World is closed.
func (w *World) shut() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = len(w.in) == 0
	return w.closed
}

// close makes the World refuse all further calls from outside it.
func (w *World) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.in = nil
	if w.foreign != nil {
		w.err = w.foreign // main's error may wrap ErrForeign, too, but does not contain the stack
	}
}

// waitForBubble waits, in a bubble, until the goroutines that a step has started are blocked, such as goroutines of package context.
func (w *World) waitForBubble() {
	if w.o.Bubble {
		synctest.Wait()
		w.pass()
	}
}

// bubbleOf returns the name of the caller's testing/synctest bubble, or "" if the caller is not in a bubble. Only the first line of the
// caller's stack trace contains the name.
func bubbleOf() string {
	var buf [256]byte
	head, _, _ := bytes.Cut(buf[:runtime.Stack(buf[:], false)], []byte{'\n'})
	at := bytes.Index(head, []byte("synctest bubble"))
	if at < 0 {
		return ""
	}
	return string(head[at:])
}
