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

// ErrForeign is the error of a run into which a goroutine outside the World has called: the run could not be repeated. The
// text has that goroutine's stack.
var ErrForeign = errors.New("a goroutine outside the World has called into it")

// outside is the part of a World for calls of other goroutines. In a bubble they may call while it sleeps, since such a call comes from a
// timer of package time, and packages time and context may call always. Any other call must end the run, since the run could not be
// repeated.
type outside struct {
	driver  int64 // the goroutine of Run
	current *task // the task that runs; nil means the World's own goroutine
	parent  suspend.Task
	stock   bool         // the clock of package time is the World's
	begun   time.Time    // the beginning of the run by this clock
	called  atomicx.Bool // foreign is not nil, in is not empty, or a context has ended

	mu      atomicx.Mutex
	foreign error   // the first call that was none of a timer
	admits  bool    // calls may enter, from the beginning of a sleep until all calls of one moment are there
	asleep  bool    // a call must unpark parent
	closed  bool    // the run is over
	in      []ready // calls that were admitted
}

// arrive is called first, on the goroutine of Run.
func (w *World) arrive() error {
	w.driver = gid.Get()
	if !w.o.Start.IsZero() && (w.o.Bubble || w.guests != nil && !w.o.Start.Equal(time.Now())) { // guests are at Start, if it is not before 2000
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

// begin begins a call of a task or a guest, and reports whether the caller may call. A guest must end the call by guests.exit.
func (w *World) begin() (guest, ok bool) {
	if g := w.guests; g != nil && !w.on() {
		g.enter()
		return true, true
	}
	return false, w.enter()
}

// calling returns the guests during the call of a guest, and nil otherwise.
func (w *World) calling() *guests {
	if g := w.guests; g != nil && g.calling {
		return g
	}
	return nil
}

// on reports whether the caller is on the World: on its own goroutine, or in its task that runs. Where suspending is forbidden, as in a
// transaction, no task is bound, but its goroutine shows it.
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

// own reports whether the caller is on the World, and otherwise ends the run. It must not end a task: a Select calls the clock and the
// timers while it holds guards, or when it has a lock or a value.
func (w *World) own() bool {
	if !w.on() {
		_ = w.fromOutside(ready{})
		return false
	}
	return true
}

// enter begins a call of the World's own tasks and callbacks, and reports whether the caller is on the World. A task that was killed ends
// here, and so does the task that runs when the run has failed.
func (w *World) enter() bool {
	if !w.own() {
		return false
	}
	if t := w.current; t != nil {
		if w.over && !w.leaving {
			runtime.Goexit() // otherwise the task may try again without end, and without a wait
		}
		t.ExitIfKilled()
	}
	return true
}

// fromOutside takes a ready from another goroutine. The zero ready is a call that only the World's own tasks may make, and is never
// admitted.
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

// timerFromOutside is AfterFunc for another goroutine.
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

// close refuses all calls from now on.
func (w *World) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.in = nil
	if w.foreign != nil {
		w.err = w.foreign // this error has the stack, but main may have returned a library's error that wraps ErrForeign
	}
}

// admit takes in the calls from outside. They are sorted by host and task: the order of arrival must not decide, or the seed would not
// repeat.
func (w *World) admit() {
	if !w.called.Load() {
		return
	}
	if w.guests != nil {
		w.called.Store(false)
		w.guests.take()
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

// place is the host's number, and number the task's.
func (r ready) place() int {
	if r.task != nil {
		return r.task.host.number() // 0 if the task has ended since
	}
	return r.host.number()
}

func (r ready) number() int {
	if r.task == nil {
		return 0
	}
	return r.task.id
}

// settle waits, in a bubble, for the goroutines that a step has started, such as the goroutines of a context that has ended.
func (w *World) settle() {
	if w.o.Bubble {
		synctest.Wait()
		w.pass()
	}
}

// pass reads the clock of package time, if it is the World's: a native wait in a step takes time.
func (w *World) pass() {
	if w.stock {
		w.now = max(w.now, time.Since(w.begun)) // ahead, if a guest waits natively
	}
}

// sleep parks the caller of Run until a goroutine outside calls: in a bubble a timer of package time, or the alarm, which is set for the
// World's own timers. If nothing can come, the run fails with ErrDeadlock.
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
	defer time.AfterFunc(d, func() { // set only now, otherwise it could find the World awake
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

// stuck ends a run in which nothing can happen any more, unless a goroutine outside has just called.
func (w *World) stuck() {
	if !w.called.Load() {
		w.fail(w.account(ErrDeadlock))
	}
}

// fallAsleep begins a sleep, which a call from outside or the alarm must end. If a call waits already, there is no sleep.
func (w *World) fallAsleep() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.admits = true
	w.asleep = !w.called.Load()
}

// park waits until the sleep ends.
func (w *World) park() {
	for w.sleeps() {
		w.parent.Park()
	}
}

// shut refuses all calls from now on, unless a call waits already. It reports whether it does.
func (w *World) shut() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = len(w.in) == 0
	return w.closed
}

// never is so long that nothing is meant to come later.
const never = 10 * 365 * 24 * time.Hour

// alarm returns the time until the next timer, or until MaxTime if that is sooner.
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

// look lets the World notice that a context has ended, also if it is about to sleep.
func (w *World) look() {
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

// idle reports whether no task and no hold is left.
func (w *World) idle() bool {
	for _, h := range w.hosts {
		if h.tasks.First() != nil || h.holds.First() != nil {
			return false
		}
	}
	return len(w.ready) == 0
}

// bubbleOf names the testing/synctest bubble of the caller, if it is in one. Only the head of its stack trace says so.
func bubbleOf() string {
	var buf [256]byte
	head, _, _ := bytes.Cut(buf[:runtime.Stack(buf[:], false)], []byte{'\n'})
	at := bytes.Index(head, []byte("synctest bubble"))
	if at < 0 {
		return ""
	}
	return string(head[at:])
}
