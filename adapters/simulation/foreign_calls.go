package simulation

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/suspend"
)

// ErrForeign says that a goroutine outside the World has called into the World, so the run could not be repeated. The text of the error
// contains the goroutine's stack.
var ErrForeign = errors.New("a goroutine outside the World has called into it")

// outside is the part of a World that handles calls from other goroutines. In a bubble, other goroutines may call while the World sleeps,
// because then a timer of package time has caused the call. Packages time and context may call at any time. Any other call must end the
// run, because the run could not be repeated.
type outside struct {
	driver  int64 // the id of Run's goroutine
	current *task // the running task, or nil while the World's own goroutine runs
	parent  suspend.Task
	stock   bool         // the World uses the clock of package time
	begun   time.Time    // the start of the run by the clock of package time
	called  atomicx.Bool // set if w.foreign is not nil, if w.in is not empty, or if a context has ended

	mu      atomicx.Mutex
	foreign error   // the error of the first call that was not allowed
	admits  bool    // calls are allowed: from the beginning of a sleep until the bubble's goroutines are blocked again
	asleep  bool    // a call must unpark w.parent
	closed  bool    // the run is over
	in      []ready // the calls that were admitted, in order of arrival
}

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

// beginCall begins a call by a task or a guest, and reports whether the call is allowed. If the caller is a guest, it must end the call with
// guests.endCall.
func (w *World) beginCall() (guest, ok bool) {
	if g := w.guests; g != nil && !w.on() {
		g.beginCall()
		return true, true
	}
	return false, w.beginTaskCall()
}

// calling returns w.guests while a guest calls, and nil otherwise.
func (w *World) calling() *guests {
	if g := w.guests; g != nil && g.calling {
		return g
	}
	return nil
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

// timerFromOutside implements AfterFunc for a goroutine outside the World.
func (w *World) timerFromOutside(h *host, d time.Duration, f func()) (stop func() bool) {
	set := make(chan *timer, 1)
	if w.fromOutside(ready{host: h, as: callback, f: func() { set <- w.after(h.scaled(d), h, f) }}) != nil {
		return func() bool { return false }
	}
	var once sync.Once
	return func() (stopped bool) {
		once.Do(func() {
			select {
			case t := <-set:
				stopped = w.stop(t)
			default:
			}
		})
		return stopped
	}
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

// waitForBubble waits, in a bubble, until the goroutines that a step has started are blocked, such as goroutines of package context.
func (w *World) waitForBubble() {
	if w.o.Bubble {
		synctest.Wait()
		w.pass()
	}
}

// pass moves w.now forward to the clock of package time, if the World uses this clock, because a native wait during a step takes time.
func (w *World) pass() {
	if w.stock {
		w.now = max(w.now, time.Since(w.begun)) // w.now is ahead of the clock if a guest waits natively
	}
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

// shut makes the World refuse all further calls, unless a call is already waiting. It reports whether the World is closed.
func (w *World) shut() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = len(w.in) == 0
	return w.closed
}

// never is the time until the alarm if no timer is set.
const never = 10 * 365 * 24 * time.Hour

// alarm returns the time until the next timer or MaxTime, whichever is sooner.
func (w *World) alarm() time.Duration {
	d := never
	if len(w.timers.heap) > 0 {
		d = w.timers.heap[0].at - w.now
	}
	if w.o.MaxTime > 0 {
		d = min(d, w.o.MaxTime-w.now+1)
	}
	return d
}

func (w *World) sleeps() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asleep
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
