// Package labels passes the profiler labels of a goroutine on to the tasks that it starts, as a go statement does.
//
// The public API sets the labels of a goroutine but does not read them. Both functions here are on the runtime's list of
// functions that other modules link to and that must keep working, see go.dev/issue/67401.
package labels

import (
	"sync/atomic"
	"unsafe"

	"github.com/braidgo/braid/internal/ledger"
)

// A Set is the labels of a goroutine. The zero Set has none.
type Set struct{ p unsafe.Pointer }

// Here returns the labels of the calling goroutine.
func Here() Set { return Set{get()} }

// Put gives the calling goroutine the labels s, and takes all others away.
func (s Set) Put() { put(s.p) }

// Clear takes the labels of the calling goroutine away, so that its next task begins without.
func Clear() {
	if get() != nil { // a put is dearer
		put(nil)
	}
}

// idle is the Set of idle coroutines. It is made elsewhere, as to make one takes package runtime/pprof.
var idle atomic.Pointer[Set]

// NameIdle makes s the labels of idle coroutines, while package census is on.
func NameIdle(s Set) { idle.Store(&s) }

// Idle gives the calling goroutine the labels of an idle coroutine, and reports whether it has: package census is on.
func Idle() bool { return ledger.On() && nameIdle() }

func nameIdle() bool {
	s := idle.Load()
	if s != nil {
		s.Put()
	}
	return s != nil
}

// Some reports whether the calling goroutine has any, or its tasks are recorded: then Inherit does something. The compiler inlines it, and
// Inherit it does not.
func Some() bool { return get() != nil || ledger.On() }

// Inherit returns f, or f under the labels of the calling goroutine if there are any. The goroutine that runs f has none. f is about to be a
// task, and is recorded if the ledger is kept.
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
