// Package prefetch loads data into the caches that will be used soon. With thousands of runnable tasks the next one is
// cold: about twenty cache lines, most of them found through pointers. A scheduler has its queue, so it prefetches one
// task ahead.
//
// An address is fetched and not followed, so it may be out of date, or any number at all. On other processors than amd64
// and arm64 all of this does nothing.
package prefetch

import "unsafe"

// Crowd is the number of tasks from which on prefetching pays. Fewer are in the caches: each takes about two kilobytes.
const Crowd = 256

// Line fetches the first cache line of *p.
func Line[T any](p *T) { line(uintptr(unsafe.Pointer(p))) }

// Lines fetches the first two cache lines of *p.
func Lines[T any](p *T) { lines(uintptr(unsafe.Pointer(p))) }

// Func fetches what f refers to.
func Func[F any](f *F) { line(*(*uintptr)(unsafe.Pointer(f))) }

// Pointer fetches the first two cache lines of what p, a pointer or a struct of one, points to.
func Pointer[P any](p *P) { lines(*(*uintptr)(unsafe.Pointer(p))) }

// A Task holds the addresses of the runtime's structure of a goroutine, and of the end of its stack when it was left.
type Task struct{ g, sp uintptr }

// Begin is called on the goroutine, once.
func (t *Task) Begin() { t.g = self() }

// Leave is called on the goroutine before it is suspended.
func (t *Task) Leave() {
	var here byte
	t.sp = uintptr(unsafe.Pointer(&here))
}

// Fetch fetches both.
func (t *Task) Fetch() { task(t) }
