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

// Pointer fetches the first two cache lines of what p, a pointer or a struct of one, points to.
func Pointer[P any](p *P) { lines(*(*uintptr)(unsafe.Pointer(p))) }

// A Task is where that is which a suspended task needs to go on: what the runtime keeps of its goroutine, about where the
// stack ended when it was left, and what it waits with.
type Task struct{ g, sp, slot, node uintptr }

// Begin is called on the goroutine, once.
func (t *Task) Begin() { t.g = self() }

// Leave is called on the goroutine by whoever is about to suspend it.
func (t *Task) Leave() {
	var here byte
	t.sp = uintptr(unsafe.Pointer(&here))
}

// With says what the task waits with: of slot two cache lines are fetched, and one of node.
func (t *Task) With(slot, node unsafe.Pointer) { t.slot, t.node = uintptr(slot), uintptr(node) }

// Fetch has all that fetched.
func (t *Task) Fetch() { task(t) }
