package explore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/braidgo/braid/internal/gid"
)

// A World is one run.
type World struct {
	e         *explorer
	tasks     []*task // cancellers among them
	contexts  []*taskContext
	own       []*ownContext
	current   *task // the task whose turn it is; nil while no task runs
	chosen    *task // the next task, if known
	checks    []func() error
	idle      []func(waiting []string) error
	now       time.Time // the time of the clock
	steps     int
	dead      bool // suspended tasks are unwound
	spent     int  // accesses since the run is dead
	redundant bool // given up, since all that can come would be as in another run
	failure   string
	trace     []event
}

// Go starts a task. Its context may be cancelled at any time.
func (w *World) Go(name string, f func(ctx context.Context)) { w.start(name, f) }

// GoDetached is Go, except that the context calls each registered function in a separate task, as the contexts of package context do. The
// context of Go calls the functions itself, as the contexts of package cancel do.
func (w *World) GoDetached(name string, f func(ctx context.Context)) {
	w.start(name, f).ctx.detached = true
}

// GoExiting is Go for a task that may end by runtime.Goexit, which is a failure otherwise.
func (w *World) GoExiting(name string, f func(ctx context.Context)) { w.start(name, f).exits = true }

func (w *World) start(name string, f func(ctx context.Context)) *task {
	t := &task{w: w, name: name}
	w.add(nil, t)
	t.ctx = w.context(t, name, context.Canceled)
	t.f = func() { f(t.ctx) }
	return t
}

// Deadline returns a context whose deadline may pass at any time.
func (w *World) Deadline() context.Context {
	c := w.context(nil, "deadline", context.DeadlineExceeded)
	c.own = true
	return c
}

// Check registers f to be called at the end of the run.
func (w *World) Check(f func() error) { w.checks = append(w.checks, f) }

// OnIdle registers f to be called whenever all live tasks wait, before a task is cancelled.
func (w *World) OnIdle(f func(waiting []string) error) { w.idle = append(w.idle, f) }

// Log notes something in the trace.
func (w *World) Log(format string, args ...any) { w.event(w.current, format, args...) }

// Called marks the beginning of an operation of the calling task, and Returned its end. The order of an end and a later beginning is then
// part of the run.
func (w *World) Called() { w.access(called, &w.trace) }

// Returned marks the end of an operation, see Called.
func (w *World) Returned() { w.access(returned, &w.trace) }

func (w *World) fail(format string, args ...any) {
	if w.failure == "" && !w.dead {
		w.failure = fmt.Sprintf(format, args...)
		w.event(nil, "FAILED: %s", w.failure)
	}
}

// run makes one run.
func (e *explorer) run(program func(w *World)) *World {
	w := &World{e: e, now: epoch}
	e.runs, e.world = e.runs+1, w
	e.step()
	e.face.begin(w)
	defer e.face.begin(nil)
	e.search.begin(w)
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
	if w.failure == "" && !w.redundant {
		for _, f := range w.checks {
			e.step()
			if err := f(); err != nil {
				w.fail("check: %v", err)
			}
		}
	}
	w.abandon()
	return w
}

func (w *World) pick(last *task) *task {
	if w.failure != "" {
		return nil
	}
	if w.steps++; w.steps > w.e.Steps {
		w.fail("livelock: %d steps, and no end", w.e.Steps)
		return nil
	}
	return w.e.search.pick(last)
}

// turn lets t run until another task has its turn.
func (w *World) turn(t *task) {
	if t.worker == nil {
		t.worker = w.e.worker()
		t.worker.task = t
		if t.cancels == nil {
			w.event(t, "begins")
		}
	}
	w.current = t
	w.e.turn.Store(t.worker.gid)
	w.e.step()
	t.worker.resume()
	w.current = nil
	w.e.turn.Store(w.e.gid)
	w.e.step()
	if t.ended {
		if t.cancels == nil && w.failure == "" {
			w.event(t, "has ended")
		}
		w.e.release(t.worker)
		t.worker = nil
	}
}

// abandon unwinds the tasks that are left.
func (w *World) abandon() {
	w.dead = true
	for i := 0; i < len(w.tasks); i++ {
		if t := w.tasks[i]; t.worker != nil {
			for !t.ended {
				w.turn(t)
			}
			for _, l := range t.holds { // a lock may outlive the run
				l.Unlock()
			}
		}
	}
}

// allWait is called when no task can run. It reports whether live tasks are left.
func (w *World) allWait() bool {
	var waiting []string
	for _, t := range w.tasks {
		if !t.helps && !t.ended {
			waiting = append(waiting, t.name)
		}
	}
	if len(waiting) == 0 {
		return false
	}
	defer func(t *task) { w.current = t }(w.current)
	w.current = nil // a look of f is no point
	for _, f := range w.idle {
		w.e.step()
		if err := f(waiting); err != nil {
			w.fail("while %s wait: %v", strings.Join(waiting, ", "), err)
			return false
		}
	}
	return true
}

func (w *World) deadlock() {
	var s []string
	for _, t := range w.tasks {
		switch {
		case t.ended || t.cancels != nil && !t.begun || t.after != nil:
		case t.lock != nil:
			s = append(s, t.name+" waits for a lock")
		default:
			s = append(s, t.name+" waits to be resumed")
		}
	}
	w.fail("deadlock: %s", strings.Join(s, ", "))
}

// running returns the calling task, nil if the caller is no task.
func (w *World) running() *task {
	if t := w.current; t != nil && t.worker.gid == gid.Get() {
		return t
	}
	return nil
}
