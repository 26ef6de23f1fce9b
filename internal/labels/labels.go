// Package labels passes the profiler labels of a goroutine on to the tasks that it starts, as a go statement does.
//
// The public API sets the labels of a goroutine but does not read them. Both functions here are on the runtime's list of
// those that other modules link to and that must keep working, see go.dev/issue/67401.
package labels

import "unsafe"

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

// Some reports whether the calling goroutine has any. The compiler inlines it, and Inherit it does not.
func Some() bool { return get() != nil }

// Inherit returns f, or f under the labels of the calling goroutine if there are any. The goroutine that runs f has none.
func Inherit(f func()) func() {
	if p := get(); p != nil && f != nil {
		return inherit(p, f)
	}
	return f
}

func inherit(p unsafe.Pointer, f func()) func() { // not inlined, to keep Inherit small
	return func() {
		put(p)
		f()
	}
}

//go:linkname get runtime/pprof.runtime_getProfLabel
func get() unsafe.Pointer

//go:linkname put runtime/pprof.runtime_setProfLabel
func put(unsafe.Pointer)
