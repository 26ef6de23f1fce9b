//go:build explore

package explore

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// A tracer is told of the accesses of all goroutines, and holds back those of the tasks of its run.
type tracer struct {
	w      atomic.Pointer[World]
	silent map[unsafe.Pointer]bool // does not change while there is a run
}

// A face is what an explorer needs to be fine.
type face struct{ tracer *tracer }

func (f *face) trace(fine bool) (undo func()) {
	if !fine {
		return func() {}
	}
	// In the table in which goroutines find what they are bound to nobody sees the entries of others, so it makes no
	// difference who comes first.
	var found learner
	atomicx.Trace(&found)
	suspend.Bind(new(task), func() {})
	f.tracer = &tracer{silent: found}
	atomicx.Trace(f.tracer)
	return func() { atomicx.Trace(nil) }
}

func (f *face) begin(w *World) {
	if f.tracer != nil {
		f.tracer.w.Store(w)
	}
}

// caller returns the task that is about to make an access, nil if it is none's.
func (tr *tracer) caller() *task {
	if w := tr.w.Load(); w != nil {
		return w.running()
	}
	return nil
}

func (tr *tracer) Access(kind string, at unsafe.Pointer) {
	if t := tr.caller(); t != nil && !tr.silent[at] {
		t.point()
		t.traced(kind)
	}
}

// traced notes an access, from which function of a user of package atomicx.
func (t *task) traced(kind string) {
	if !t.w.e.tracing {
		return
	}
	var pcs [8]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for f, more := frames.Next(); more; f, more = frames.Next() {
		if !strings.Contains(f.Function, "/internal/atomicx.") {
			t.w.event(t, "%s at %s", kind, site(f))
			return
		}
	}
}

// A learner takes down what is accessed.
type learner map[unsafe.Pointer]bool

func (l *learner) Access(_ string, at unsafe.Pointer) {
	if *l == nil {
		*l = make(learner)
	}
	(*l)[at] = true
}

func (l *learner) Lock(m *sync.Mutex)   { m.Lock() }
func (l *learner) Unlock(m *sync.Mutex) { m.Unlock() }

func (tr *tracer) Lock(m *sync.Mutex) {
	t := tr.caller()
	if t == nil {
		m.Lock()
		return
	}
	w := t.w
	if w.dead { // and nobody will see what it protects
		return
	}
	t.lock = m
	if t.enabled() {
		t.point()
	} else {
		w.handOver(t, w.pick(nil))
	}
	t.lock = nil
	m.Lock() // at once
	t.traced("Lock")
}

func (tr *tracer) Unlock(m *sync.Mutex) {
	t := tr.caller()
	if t != nil && t.w.dead {
		return
	}
	m.Unlock()
}
