package explore

import (
	"fmt"
	"iter"
	"runtime"
	"strings"

	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/suspend"
)

// exited is the panic value that replaces a runtime.Goexit, which would otherwise continue in the caller that resumes the coroutine.
type exited struct{}

func (e *explorer) worker() *worker {
	if n := len(e.workers); n > 0 {
		c := e.workers[n-1]
		e.workers = e.workers[:n-1]
		return c
	}
	c := &worker{e: e}
	c.next, c.stop = iter.Pull(c.body)
	return c
}

func (e *explorer) recycle(c *worker) {
	c.task = nil
	if !c.gone {
		e.workers = append(e.workers, c)
	}
}

func (e *explorer) stop() {
	for _, c := range e.workers {
		c.stop()
	}
}

func (c *worker) resume() {
	defer func() {
		if c.gone {
			_ = recover()
		}
	}()
	c.next()
}

func (c *worker) body(yield func(struct{}) bool) {
	c.yield, c.gid = yield, gid.Get()
	c.e.turn.Store(c.gid)
	c.e.countStep()
	for {
		c.run()
		if !yield(struct{}{}) {
			return
		}
	}
}

func (c *worker) run() {
	t := c.task
	returned := false
	defer func() {
		t.ended = true
		if returned {
			return
		}
		switch v := recover(); v {
		case nil:
			if !t.exits {
				t.w.fail("%s has called runtime.Goexit", t.name)
			}
			c.gone = true
		default:
			t.eventsHere(fmt.Sprintf("panics: %v", v), true)
			t.w.fail("%s panics: %v", t.name, v)
		}
		if c.gone = c.gone || t.exits || t.w.dead; c.gone { // a Goexit continues even if a deferred function panics
			panic(exited{})
		}
	}()
	if t.helps {
		t.f() // a helper must not suspend
	} else {
		suspend.Bind(t, t.f)
	}
	returned = true
}

const module = "github.com/braidgo/braid/"

// eventHere adds an event to the trace, with the line at which the program called the library and the name of the operation.
func (t *task) eventHere(what string) { t.eventsHere(what, false) }

// eventsHere is like eventHere, but if callers is true, it also adds the lines of the callers.
func (t *task) eventsHere(what string, callers bool) {
	if !t.w.e.tracing || t.w.dead {
		return
	}
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for operation, told, more := "", false, true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		name, inside := inside(f.Function, f.File)
		switch {
		case !inside && !below.MatchString(f.Function) || !more && !told:
			t.w.eventAt(f, t, "%s%s", what, operation)
			if !callers {
				return
			}
			what, operation, told = "called", "", true
		case inside && !strings.HasPrefix(name, "suspend.") && !strings.HasPrefix(name, "suspendtest/") && !strings.HasPrefix(name, "internal/"):
			operation = " in " + strings.NewReplacer("[...]", "", "(*", "", ")", "").Replace(name[strings.LastIndexByte(name, '/')+1:])
		}
	}
}

// inside reports whether a function belongs to the library, but not to its tests or examples.
func inside(function, file string) (name string, yes bool) {
	name, ours := strings.CutPrefix(function, module)
	return name, ours && !strings.HasSuffix(file, "_test.go") && !strings.HasPrefix(name, "examples/")
}

func site(f runtime.Frame) string {
	return fmt.Sprintf("%s:%d", f.File[strings.LastIndexByte(f.File, '/')+1:], f.Line)
}
