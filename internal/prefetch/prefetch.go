// Package prefetch loads data that will be used soon into the processor's caches. With thousands of runnable tasks, the next
// task's data is in no cache: about twenty cache lines, most of them reached through pointers. A scheduler can read its queue
// in advance, and so prefetch the data of the next task.
//
// An address is only prefetched and never dereferenced, so it may be stale or invalid. On processors other than amd64 and
// arm64, these functions do nothing.
package prefetch

import "unsafe"

// Crowd is the number of tasks above which prefetching pays off. Fewer tasks fit into the caches, since each task takes about
// two kilobytes.
const Crowd = 256

// Line fetches the first cache line of *p.
func Line[T any](p *T) { line(uintptr(unsafe.Pointer(p))) }

// Lines fetches the first two cache lines of *p.
func Lines[T any](p *T) { lines(uintptr(unsafe.Pointer(p))) }

// Func fetches the first cache line of the closure that *f refers to.
func Func[F any](f *F) { line(*(*uintptr)(unsafe.Pointer(f))) }

// Pointer fetches the first two cache lines of the object that *p points to. P must be a pointer, or a struct of one pointer.
func Pointer[P any](p *P) { lines(*(*uintptr)(unsafe.Pointer(p))) }

// A Task holds the address of a goroutine's runtime structure (its g) and the address at which its stack ended when Leave was
// called.
type Task struct{ g, sp uintptr }

// A goroutine calls Begin once, to record its g.
func (t *Task) Begin() { t.g = self() }

// G returns the address of the g of the goroutine that has called Begin, or nil.
func (t *Task) G() unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&t.g)) }

// A goroutine calls Leave before it is suspended, to record the end of its stack.
func (t *Task) Leave() {
	var here byte
	t.sp = uintptr(unsafe.Pointer(&here))
}

// Fetch fetches the parts of the g and of the stack that a switch uses.
func (t *Task) Fetch() { task(t) }
