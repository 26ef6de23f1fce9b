// Package labels copies the profiler labels of a goroutine to the tasks that it starts, as a go statement does.
//
// Package runtime/pprof sets the labels of a goroutine but does not read them. This package therefore links to two functions of the
// runtime. Both are on the list of functions that other modules use and that must keep working, see go.dev/issue/67401.
package labels

import (
	"sync/atomic"
	"unsafe"

	"github.com/braidgo/braid/internal/ledger"
)

// A Set is a set of profiler labels. The zero Set is empty.
type Set struct{ p unsafe.Pointer }

// Here returns the labels of the calling goroutine.
func Here() Set { return Set{get()} }

// Put replaces the labels of the calling goroutine with s.
func (s Set) Put() { put(s.p) }

// Clear removes the labels of the calling goroutine, so that its next task begins without labels.
func Clear() {
	if get() != nil { // a call of put costs more than a call of get
		put(nil)
	}
}

// idle holds the labels of idle coroutines. Another package makes them, so that this package need not import runtime/pprof.
var idle atomic.Pointer[Set]

// NameIdle sets the labels that idle coroutines have while the census is on.
func NameIdle(s Set) { idle.Store(&s) }

// Idle gives the calling goroutine the labels of an idle coroutine if the census is on. It reports whether it has done so.
func Idle() bool { return ledger.On() && nameIdle() }

func nameIdle() bool {
	s := idle.Load()
	if s != nil {
		s.Put()
	}
	return s != nil
}

// Some reports whether a call of Inherit has an effect: the calling goroutine has labels, or tasks are recorded. The compiler can
// inline Some, but not Inherit.
func Some() bool { return get() != nil || ledger.On() }

// Inherit returns a function that calls f with the labels of the calling goroutine, or f itself if there are none. The goroutine that
// calls the function must have no labels. f is the function of a new task, which Inherit records if the ledger is kept.
func Inherit(f func()) func() {
	if p := get(); (p != nil || ledger.On()) && f != nil {
		return inherit(p, f)
	}
	return f
}

func inherit(p unsafe.Pointer, f func()) func() { // must not be inlined, to keep Inherit small
	if ledger.On() {
		f = ledger.Begin(f)
	}
	return func() {
		put(p)
		f()
	}
}

//go:linkname get runtime/pprof.runtime_getProfLabel
func get() unsafe.Pointer

//go:linkname put runtime/pprof.runtime_setProfLabel
func put(unsafe.Pointer)
