//go:build explore

package explore

import (
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// Built says whether this build supports Config.Fine.
const Built = true

// A tracer is called before each access by any goroutine. If the goroutine is a task of the run, its turn may then pass to another task.
type tracer struct {
	w atomic.Pointer[World]
}

// A face holds the tracer of an explorer, which is nil without Config.Fine.
type face struct{ tracer *tracer }

func (f *face) trace(fine bool) (undo func()) {
	if !fine {
		return func() {}
	}
	f.tracer = new(tracer)
	atomicx.Trace(f.tracer)
	return func() { atomicx.Trace(nil) }
}

func (f *face) attach(w *World) {
	if f.tracer != nil {
		f.tracer.w.Store(w)
		if w != nil {
			suspend.NumberGuards()
		}
	}
}

// notice sets e.atomics when a task accesses an atomic or a lock of package atomicx itself, and not through the library, until end is called.
func (e *explorer) notice() (end func()) { return atomicx.TraceUnlessTraced(&noticer{e}) }

// A noticer is the Tracer of the first run of a search without Config.Fine.
type noticer struct{ e *explorer }

func (n *noticer) Access(atomicx.Kind, unsafe.Pointer) { n.accessed() }
func (n *noticer) Lock(m *sync.Mutex)                  { n.accessed(); m.Lock() }
func (n *noticer) Unlock(m *sync.Mutex)                { m.Unlock() }
func (n *noticer) Look(<-chan struct{})                {}
func (n *noticer) Unchanged()                          {}

func (n *noticer) accessed() {
	if e := n.e; !e.atomics && (watcher{e}).Runs() && e.world.current != nil {
		f := userOfAtomics(4)
		_, ours := inside(f.Function, f.File)
		e.atomics = !ours
	}
}

// caller returns the task that is about to perform an access, or nil if the caller is not a task.
func (tr *tracer) caller() *task {
	if w := tr.w.Load(); w != nil {
		return w.running()
	}
	return nil
}

// Look implements atomicx.Tracer. It performs an access to the context with this Done channel, if the context belongs to the run.
func (tr *tracer) Look(done <-chan struct{}) {
	t := tr.caller()
	if t == nil {
		return
	}
	for _, c := range t.w.contexts {
		if c.done == done {
			c.observe(read)
		}
	}
	for _, c := range t.w.own {
		if c.done == done {
			c.observe(read)
		}
	}
}

// Access implements atomicx.Tracer.
func (tr *tracer) Access(kind atomicx.Kind, at unsafe.Pointer) {
	t := tr.caller()
	if t == nil {
		return
	}
	switch {
	case kind == atomicx.Load:
		t.access(read, at)
	case kind == atomicx.TryLock && t.w.e.Reduced:
		t.w.fail("a reduced search cannot predict when a TryLock fails")
	default:
		t.access(write, at)
	}
	if t.w.e.tracing {
		t.traced(kind.String())
	}
}

// Unchanged implements atomicx.Tracer.
func (tr *tracer) Unchanged() {
	if t := tr.caller(); t != nil {
		t.quiet = true
	}
}

// traced adds an access to the trace, with the function that has called package atomicx.
func (t *task) traced(kind string) {
	t.w.eventAt(userOfAtomics(4), t, "%s", kind)
}

// userOfAtomics returns the function that has called package atomicx. The first function that runtime.Callers(skip) returns belongs to this
// package, or to atomicx.
func userOfAtomics(skip int) (f runtime.Frame) {
	var pcs [8]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(skip, pcs[:])])
	for more := true; more; {
		f, more = frames.Next()
		if !strings.Contains(f.Function, "/internal/atomicx.") && !strings.HasPrefix(f.Function, module+"suspendtest/internal/explore.(*") {
			break
		}
	}
	return f
}

// Lock implements atomicx.Tracer.
func (tr *tracer) Lock(m *sync.Mutex) {
	t := tr.caller()
	if t == nil {
		m.Lock()
		return
	}
	w := t.w
	if w.dead { // no task will use the protected state
		return
	}
	t.lock = m
	if t.w.e.Reduced || t.enabled() {
		access(t, locks, m)
	} else {
		w.handOver(t, w.pick(nil))
	}
	t.lock = nil
	m.Lock() // the lock is free
	t.holds = append(t.holds, m)
	if w.e.tracing {
		t.traced("Lock")
	}
}

// Unlock implements atomicx.Tracer.
func (tr *tracer) Unlock(m *sync.Mutex) {
	t := tr.caller()
	if t == nil {
		m.Unlock()
		return
	}
	i := slices.Index(t.holds, locker(m))
	switch {
	case i >= 0:
		t.holds = slices.Delete(t.holds, i, i+1)
	case t.w.dead: // the run has ended, so Lock has not locked m
		return
	}
	if t.w.e.Reduced && !t.w.dead {
		r := t.w.e.search.(*reduction)
		r.thing(unsafe.Pointer(m)).unlock = r.current + 1
	}
	m.Unlock()
}
