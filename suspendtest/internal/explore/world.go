package explore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/braidgo/braid/internal/gid"
)

// Go starts a task that calls f. The search may cancel the task's context at any time.
func (w *World) Go(name string, f func(ctx context.Context)) { w.start(name, f) }

// GoDetached is like Go, except that the context calls each registered function in a separate task, as contexts of package context do.
// The context that Go passes to f instead calls these functions synchronously, as contexts of package cancel do.
func (w *World) GoDetached(name string, f func(ctx context.Context)) {
	w.start(name, f).ctx.detached = true
}

// GoExiting is like Go, but f may call runtime.Goexit, which is otherwise a failure.
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

// Check registers f to be called at the end of the run. The run fails if f returns an error.
func (w *World) Check(f func() error) { w.checks = append(w.checks, f) }

// OnIdle registers f to be called whenever all live tasks wait, before the search cancels a task. The run fails if f returns an error.
func (w *World) OnIdle(f func(waiting []string) error) { w.idle = append(w.idle, f) }

// Log adds a line to the trace.
func (w *World) Log(format string, args ...any) { w.event(w.current, format, args...) }

// Called marks the beginning of an operation of the calling task, and Returned marks its end. A reduced search then explores both orders
// of the end of one operation and the beginning of another.
func (w *World) Called() { w.access(called, &w.trace) }

// Returned marks the end of an operation; see Called.
func (w *World) Returned() { w.access(returned, &w.trace) }

func (w *World) fail(format string, args ...any) {
	if w.failure == "" && !w.dead {
		w.failure = fmt.Sprintf(format, args...)
		w.event(nil, "FAILED: %s", w.failure)
	}
}

// run executes one run of program.
func (e *explorer) run(program func(w *World)) *World {
	w := &World{e: e, now: epoch}
	e.runs, e.world = e.runs+1, w
	e.countStep()
	e.face.attach(w)
	defer e.face.attach(nil)
	e.search.beginRun(w)
	program(w)
	for w.failure == "" {
		t := w.chosen
		w.chosen = nil
		if t == nil {
			if t = w.pick(nil); t == nil {
				break
			}
		}
		w.giveTurn(t)
	}
	if w.failure == "" && !w.redundant {
		for _, f := range w.checks {
			e.countStep()
			if err := f(); err != nil {
				w.fail("check: %v", err)
			}
		}
	}
	w.unwind()
	return w
}

func (w *World) pick(last *task) *task {
	if w.failure != "" {
		return nil
	}
	if w.steps++; w.steps > w.e.Steps {
		w.fail("livelock: the run has not ended after %d steps", w.e.Steps)
		return nil
	}
	return w.e.search.pick(last)
}

// giveTurn resumes t, and returns when t gives up its turn or ends.
func (w *World) giveTurn(t *task) {
	if t.worker == nil {
		t.worker = w.e.worker()
		t.worker.task = t
		if t.cancels == nil {
			w.event(t, "begins")
		}
	}
	w.current = t
	w.e.turn.Store(t.worker.gid)
	w.e.countStep()
	t.worker.resume()
	w.current = nil
	w.e.turn.Store(w.e.gid)
	w.e.countStep()
	if t.ended {
		if t.cancels == nil && w.failure == "" {
			w.event(t, "has ended")
		}
		w.e.recycle(t.worker)
		t.worker = nil
	}
}

// unwind unwinds the tasks that have not ended. They exit, because code that recovers a panic, or ends the process after one, could not
// tell that the program has not panicked.
func (w *World) unwind() {
	w.dead = true
	for i := 0; i < len(w.tasks); i++ {
		if t := w.tasks[i]; t.worker != nil {
			for !t.ended {
				w.giveTurn(t)
			}
			for _, l := range t.holds { // a later run may use the same lock
				l.Unlock()
			}
		}
	}
}

// allWait is called when no task can run. It calls the functions registered with OnIdle, and reports whether live tasks are left.
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
	w.current = nil // an access by f is not a scheduling point
	for _, f := range w.idle {
		w.e.countStep()
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

// running returns the calling task, or nil if the caller is not a task.
func (w *World) running() *task {
	if t := w.current; t != nil && t.worker.gid == gid.Get() {
		return t
	}
	return nil
}

// epoch is the time at which the clock of each run starts, so that all runs see the same times.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
