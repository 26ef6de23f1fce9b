// Package prefetch asks the processor for what will be looked at soon. Where thousands of tasks take turns, nothing of
// the next one is in its caches, and what it needs to go on lies in twenty places, most of them found by way of another;
// so who knows the one after next has it fetched while it deals with the next.
//
// An address is not followed, only fetched: it may be out of date, or anything at all. On a processor that is not one of
// those known here, all of this does nothing.
package prefetch

import "unsafe"

// Crowd is from how many tasks on it is worth the trouble. Fewer are in the caches: each takes about two kilobytes.
const Crowd = 256

// Line has the cache line at p fetched.
func Line(p unsafe.Pointer) { line(uintptr(p)) }

// Lines has the two cache lines from p on fetched.
func Lines(p unsafe.Pointer) { lines(uintptr(p)) }

// Func has what f refers to fetched.
func Func[F any](f *F) { line(*(*uintptr)(unsafe.Pointer(f))) }

// A Goroutine is where the runtime keeps one that is suspended, and about where its stack ended when it was left.
type Goroutine struct{ g, sp uintptr }

// Begin is called on the goroutine, once.
func (r *Goroutine) Begin() { r.g = self() }

// Leave is called on the goroutine by whoever is about to suspend it.
func (r *Goroutine) Leave() {
	var here byte
	r.sp = uintptr(unsafe.Pointer(&here))
}

// Fetch has fetched what it takes to switch to the goroutine, and the end of its stack.
func (r *Goroutine) Fetch() { goroutine(r.g, r.sp) }
