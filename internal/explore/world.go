package explore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/suspend"
)

// A World is one run.
type World struct {
	e           *explorer
	tasks       []*task // cancellers among them
	current     *task   // the one whose turn it is; nil while none of them runs
	chosen      *task   // to be next, if that is known
	checks      []func() error
	idle        []func(waiting []string) error
	options     []*task
	made        int // choices
	steps       int
	preempted   int
	cancelled   int
	interrupted *task // by the canceller whose turn it is
	dead        bool  // what still is suspended is unwound
	spent       int   // accesses since
	failure     string
	trace       []string
}

// A task is one of the program's, or one that cancels the context of another.
type task struct {
	w       *World
	name    string
	f       func()
	ctx     *taskContext // of the task
	cancels *taskContext // not nil: a canceller, which need not run
	begun   bool
	ended   bool
	parked  bool
	permit  bool
	lock    locker  // what it waits for, if not nil
	yielded []*task // those that could run when it yielded, and have not made a step since
	worker  *worker
}

type locker interface {
	TryLock() bool
	Unlock()
}

// Go starts a task. Its context may be cancelled at any time.
func (w *World) Go(name string, f func(ctx context.Context)) {
	t := &task{w: w, name: name}
	t.ctx = &taskContext{t: t, done: make(chan struct{})}
	t.f = func() { f(t.ctx) }
	c := &task{w: w, name: name, cancels: t.ctx, f: t.ctx.cancel}
	t.ctx.canceller = c
	w.tasks = append(w.tasks, t, c)
}

// Check has f called at the end of the run.
func (w *World) Check(f func() error) { w.checks = append(w.checks, f) }

// OnIdle has f called whenever all that have not ended wait, before one of them is cancelled.
func (w *World) OnIdle(f func(waiting []string) error) { w.idle = append(w.idle, f) }

// Log notes something in the trace.
func (w *World) Log(format string, args ...any) { w.event(w.current, format, args...) }

func (w *World) event(t *task, format string, args ...any) {
	if !w.e.tracing || w.dead {
		return
	}
	name := ""
	if t != nil {
		name = t.name
	}
	w.trace = append(w.trace, fmt.Sprintf("%-8s ", name)+fmt.Sprintf(format, args...))
}

func (w *World) fail(format string, args ...any) {
	if w.failure == "" && !w.dead {
		w.failure = fmt.Sprintf(format, args...)
		w.event(nil, "FAILED: %s", w.failure)
	}
}

// run makes one run.
func (e *explorer) run(program func(w *World)) *World {
	w := &World{e: e}
	e.begin(w)
	defer e.begin(nil)
	program(w)
	for w.failure == "" {
		t := w.chosen
		w.chosen = nil
		if t == nil {
			if t = w.pick(nil); t == nil {
				break
			}
		}
		w.turn(t)
	}
	if w.failure == "" {
		for _, f := range w.checks {
			if err := f(); err != nil {
				w.fail("check: %v", err)
			}
		}
	}
	w.abandon()
	return w
}

// turn lets t run until it is somebody else's turn.
func (w *World) turn(t *task) {
	if t.worker == nil {
		t.worker = w.e.worker()
		t.worker.task = t
		if t.cancels == nil {
			w.event(t, "begins")
		}
	}
	w.current = t
	t.worker.resume()
	w.current = nil
	if t.ended {
		if t.cancels == nil && w.failure == "" {
			w.event(t, "has ended")
		}
		w.e.release(t.worker)
		t.worker = nil
	}
}

// abandon unwinds what is left.
func (w *World) abandon() {
	w.dead = true
	for i := 0; i < len(w.tasks); i++ {
		if t := w.tasks[i]; t.worker != nil {
			for !t.ended {
				w.turn(t)
			}
		}
	}
}

func (t *task) enabled() bool {
	switch {
	case t.ended, t.parked, t.cancels != nil && !t.begun:
		return false
	case t.lock != nil:
		if !t.lock.TryLock() {
			return false
		}
		t.lock.Unlock()
	}
	return true
}

// eligible says no to a task that has yielded as long as there are those that it has yielded to.
func (t *task) eligible() bool {
	return t.enabled() && !slices.ContainsFunc(t.yielded, (*task).enabled)
}

// pick chooses whose turn is next, nil if the run is over. last is the one that has come to a point where it can be
// made to wait; nil if it cannot go on by itself, or does not want to.
func (w *World) pick(last *task) *task {
	if w.failure != "" {
		return nil
	}
	if w.steps++; w.steps > w.e.Steps {
		w.fail("livelock: %d steps, and no end", w.e.Steps)
		return nil
	}
	o := w.options[:0]
	if c := w.interrupted; c != nil && last == nil { // the canceller waits, or has ended
		last = c
	}
	preempting := last != nil && last.eligible()
	if preempting {
		o = append(o, last)
	}
	if !preempting || w.e.Preemptions < 0 || w.preempted < w.e.Preemptions {
		for _, may := range []func(*task) bool{(*task).eligible, (*task).enabled} {
			for _, t := range w.tasks {
				if t != last && may(t) || t == last && !preempting && may(t) {
					o = append(o, t)
				}
			}
			if len(o) > 0 {
				break
			}
		}
	}
	busy := len(o) > 0
	if !busy && !w.allWait() {
		return nil
	}
	for _, t := range w.tasks {
		if c := t.cancels; c != nil && !t.begun && !c.t.ended && c.used {
			if busy && w.mayCancel() || !busy && c.t.parked {
				o = append(o, t)
			}
		}
	}
	w.options = o
	if len(o) == 0 {
		w.fail("deadlock: %s", w.waiting())
		return nil
	}
	t := o[w.choose(len(o))]
	switch {
	case w.failure != "":
		return nil
	case !t.begun && t.cancels != nil && busy:
		w.cancelled++
		w.interrupted = last // and goes on afterwards, unless it is preempted
	case !t.begun && t.cancels != nil:
	case preempting && t != last:
		w.preempted++
	}
	if t.begun {
		w.interrupted = nil
	}
	t.begun = true
	for _, u := range w.tasks {
		if len(u.yielded) > 0 {
			if i := slices.Index(u.yielded, t); i >= 0 {
				u.yielded = slices.Delete(u.yielded, i, i+1)
			}
		}
	}
	t.yielded = t.yielded[:0]
	return t
}

func (w *World) mayCancel() bool {
	return w.e.Cancellations < 0 || w.cancelled < w.e.Cancellations
}

// allWait is called when no task can run. It reports whether there are any left.
func (w *World) allWait() bool {
	var waiting []string
	for _, t := range w.tasks {
		if t.cancels == nil && !t.ended {
			waiting = append(waiting, t.name)
		}
	}
	if len(waiting) == 0 {
		return false
	}
	for _, f := range w.idle {
		if err := f(waiting); err != nil {
			w.fail("while %s wait: %v", strings.Join(waiting, ", "), err)
			return false
		}
	}
	return true
}

func (w *World) waiting() string {
	var s []string
	for _, t := range w.tasks {
		switch {
		case t.ended || t.cancels != nil && !t.begun:
		case t.lock != nil:
			s = append(s, t.name+" waits for a lock")
		default:
			s = append(s, t.name+" waits to be resumed")
		}
	}
	return strings.Join(s, ", ")
}

// point is a place where t, whose turn it is, can be made to wait.
func (t *task) point() {
	w := t.w
	if w.dead {
		if w.spent++; w.spent > 1000 {
			panic(unwound{})
		}
		return
	}
	w.handOver(t, w.pick(t))
}

// handOver ends the turn of t, unless it is next.
func (w *World) handOver(t, next *task) {
	if next == t {
		return
	}
	w.chosen = next
	t.worker.yield(struct{}{})
	if w.dead {
		panic(unwound{})
	}
}

// Park implements suspend.Task.
func (t *task) Park() {
	w := t.w
	if w.dead {
		panic(unwound{})
	}
	if t.permit {
		t.permit = false
		return
	}
	t.parked = true
	if w.e.tracing {
		w.event(t, "suspended at %s", userSite())
	}
	w.handOver(t, w.pick(nil))
}

// Unpark implements suspend.Task.
func (t *task) Unpark() {
	w := t.w
	if u := w.running(); u != nil && w.e.Fine {
		u.point()
	}
	if !t.parked {
		t.permit = true
		return
	}
	t.parked = false
	if c := w.current; c == nil || c.cancels == nil {
		w.event(c, "wakes %s", t.name)
	}
}

// Yield lets all others make a step.
func (t *task) Yield() {
	w := t.w
	if w.dead {
		panic(unwound{})
	}
	for _, u := range w.tasks {
		if u != t && u.enabled() {
			t.yielded = append(t.yielded, u)
		}
	}
	w.event(t, "yields")
	w.handOver(t, w.pick(nil))
}

// Spawner starts tasks of the same run.
func (t *task) Spawner() suspend.Spawner { return spawner{t.w} }

type spawner struct{ w *World }

func (s spawner) Go(f func()) error {
	w := s.w
	w.tasks = append(w.tasks, &task{w: w, name: fmt.Sprint("task", len(w.tasks)), f: f})
	return nil
}

// running is the task that calls, nil if none of them does.
func (w *World) running() *task {
	if t := w.current; t != nil && t.worker.gid == gid.Get() {
		return t
	}
	return nil
}

// A taskContext is cancelled by its canceller, which calls those who want to know itself.
type taskContext struct {
	t         *task
	canceller *task
	used      bool // somebody has looked
	done      chan struct{}
	err       error
	after     []*func()
}

func (c *taskContext) Deadline() (deadline time.Time, ok bool) { return deadline, false }
func (c *taskContext) Value(any) any                           { return nil }

func (c *taskContext) Done() <-chan struct{} {
	c.look()
	return c.done
}

func (c *taskContext) Err() error {
	c.look()
	return c.err
}

// AfterFunc makes cancellation synchronous.
func (c *taskContext) AfterFunc(f func()) (stop func() bool) {
	c.look()
	if c.err != nil {
		f()
		return func() bool { return false }
	}
	entry := &f
	c.after = append(c.after, entry)
	return func() bool {
		i := slices.Index(c.after, entry)
		if i >= 0 {
			c.after = slices.Delete(c.after, i, i+1)
		}
		return i >= 0
	}
}

// look is where a context may turn out to be cancelled. Before the first look it makes no difference when that was; after
// it, in the fine face, the canceller has its turns.
func (c *taskContext) look() {
	w := c.t.w
	t := w.running()
	if t == nil || w.dead || c.canceller.begun || c.used && w.e.Fine {
		return
	}
	c.used = true
	if w.mayCancel() && w.choose(2) == 1 {
		w.cancelled++
		c.canceller.begun, c.canceller.ended = true, true
		c.cancel()
	}
}

func (c *taskContext) cancel() {
	c.t.w.event(c.t, "is cancelled")
	c.err = context.Canceled
	close(c.done)
	for len(c.after) > 0 {
		f := c.after[0]
		c.after = c.after[1:]
		(*f)()
	}
}
