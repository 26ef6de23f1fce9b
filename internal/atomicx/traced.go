//go:build explore

// Package atomicx names the atomics and locks that Braid's primitives and schedulers are made of.
//
// Built with the tag explore, they are types of its own: they do what those of sync and sync/atomic do, and say so
// before it to whoever traces them, see package explore.
package atomicx

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

// A Tracer is told of each access, by the goroutine that is about to make it. It may hold it back.
type Tracer interface {
	Access(kind string, at unsafe.Pointer)

	// Lock locks m, and Unlock unlocks it.
	Lock(m *sync.Mutex)
	Unlock(m *sync.Mutex)
}

var tracer atomic.Pointer[Tracer]

// Trace has t told of all accesses from now on, and nobody if it is nil.
func Trace(t Tracer) {
	if t == nil {
		tracer.Store(nil)
	} else {
		tracer.Store(&t)
	}
}

func access(kind string, at unsafe.Pointer) {
	if t := tracer.Load(); t != nil {
		(*t).Access(kind, at)
	}
}

// Mutex is a sync.Mutex.
type Mutex struct{ mu sync.Mutex }

// Lock is that of sync.Mutex.
func (m *Mutex) Lock() {
	if t := tracer.Load(); t != nil {
		(*t).Lock(&m.mu)
		return
	}
	m.mu.Lock()
}

// Unlock is that of sync.Mutex.
func (m *Mutex) Unlock() {
	if t := tracer.Load(); t != nil {
		(*t).Unlock(&m.mu)
		return
	}
	m.mu.Unlock()
}

// TryLock is that of sync.Mutex.
func (m *Mutex) TryLock() bool {
	access("TryLock", unsafe.Pointer(m))
	return m.mu.TryLock()
}

// Bool is an atomic.Bool.
type Bool struct{ v atomic.Bool }

// Load is that of atomic.Bool.
func (x *Bool) Load() bool {
	access("Load", unsafe.Pointer(x))
	return x.v.Load()
}

// Store is that of atomic.Bool.
func (x *Bool) Store(v bool) {
	access("Store", unsafe.Pointer(x))
	x.v.Store(v)
}

// Swap is that of atomic.Bool.
func (x *Bool) Swap(v bool) (old bool) {
	access("Swap", unsafe.Pointer(x))
	return x.v.Swap(v)
}

// CompareAndSwap is that of atomic.Bool.
func (x *Bool) CompareAndSwap(old, v bool) (swapped bool) {
	access("CompareAndSwap", unsafe.Pointer(x))
	return x.v.CompareAndSwap(old, v)
}

// Int32 is an atomic.Int32.
type Int32 struct{ v atomic.Int32 }

// Load is that of atomic.Int32.
func (x *Int32) Load() int32 {
	access("Load", unsafe.Pointer(x))
	return x.v.Load()
}

// Store is that of atomic.Int32.
func (x *Int32) Store(v int32) {
	access("Store", unsafe.Pointer(x))
	x.v.Store(v)
}

// Swap is that of atomic.Int32.
func (x *Int32) Swap(v int32) (old int32) {
	access("Swap", unsafe.Pointer(x))
	return x.v.Swap(v)
}

// CompareAndSwap is that of atomic.Int32.
func (x *Int32) CompareAndSwap(old, v int32) (swapped bool) {
	access("CompareAndSwap", unsafe.Pointer(x))
	return x.v.CompareAndSwap(old, v)
}

// Add is that of atomic.Int32.
func (x *Int32) Add(delta int32) (new int32) {
	access("Add", unsafe.Pointer(x))
	return x.v.Add(delta)
}

// And is that of atomic.Int32.
func (x *Int32) And(mask int32) (old int32) {
	access("And", unsafe.Pointer(x))
	return x.v.And(mask)
}

// Or is that of atomic.Int32.
func (x *Int32) Or(mask int32) (old int32) {
	access("Or", unsafe.Pointer(x))
	return x.v.Or(mask)
}

// Int64 is not traced: goroutines find what they are bound to among them, at each suspension.
type Int64 = atomic.Int64

// Uint32 is an atomic.Uint32.
type Uint32 struct{ v atomic.Uint32 }

// Load is that of atomic.Uint32.
func (x *Uint32) Load() uint32 {
	access("Load", unsafe.Pointer(x))
	return x.v.Load()
}

// Store is that of atomic.Uint32.
func (x *Uint32) Store(v uint32) {
	access("Store", unsafe.Pointer(x))
	x.v.Store(v)
}

// Swap is that of atomic.Uint32.
func (x *Uint32) Swap(v uint32) (old uint32) {
	access("Swap", unsafe.Pointer(x))
	return x.v.Swap(v)
}

// CompareAndSwap is that of atomic.Uint32.
func (x *Uint32) CompareAndSwap(old, v uint32) (swapped bool) {
	access("CompareAndSwap", unsafe.Pointer(x))
	return x.v.CompareAndSwap(old, v)
}

// Add is that of atomic.Uint32.
func (x *Uint32) Add(delta uint32) (new uint32) {
	access("Add", unsafe.Pointer(x))
	return x.v.Add(delta)
}

// And is that of atomic.Uint32.
func (x *Uint32) And(mask uint32) (old uint32) {
	access("And", unsafe.Pointer(x))
	return x.v.And(mask)
}

// Or is that of atomic.Uint32.
func (x *Uint32) Or(mask uint32) (old uint32) {
	access("Or", unsafe.Pointer(x))
	return x.v.Or(mask)
}

// Uint64 is an atomic.Uint64.
type Uint64 struct{ v atomic.Uint64 }

// Load is that of atomic.Uint64.
func (x *Uint64) Load() uint64 {
	access("Load", unsafe.Pointer(x))
	return x.v.Load()
}

// Store is that of atomic.Uint64.
func (x *Uint64) Store(v uint64) {
	access("Store", unsafe.Pointer(x))
	x.v.Store(v)
}

// Swap is that of atomic.Uint64.
func (x *Uint64) Swap(v uint64) (old uint64) {
	access("Swap", unsafe.Pointer(x))
	return x.v.Swap(v)
}

// CompareAndSwap is that of atomic.Uint64.
func (x *Uint64) CompareAndSwap(old, v uint64) (swapped bool) {
	access("CompareAndSwap", unsafe.Pointer(x))
	return x.v.CompareAndSwap(old, v)
}

// Add is that of atomic.Uint64.
func (x *Uint64) Add(delta uint64) (new uint64) {
	access("Add", unsafe.Pointer(x))
	return x.v.Add(delta)
}

// And is that of atomic.Uint64.
func (x *Uint64) And(mask uint64) (old uint64) {
	access("And", unsafe.Pointer(x))
	return x.v.And(mask)
}

// Or is that of atomic.Uint64.
func (x *Uint64) Or(mask uint64) (old uint64) {
	access("Or", unsafe.Pointer(x))
	return x.v.Or(mask)
}

// Pointer is an atomic.Pointer.
type Pointer[T any] struct{ v atomic.Pointer[T] }

// Load is that of atomic.Pointer.
func (x *Pointer[T]) Load() *T {
	access("Load", unsafe.Pointer(x))
	return x.v.Load()
}

// Store is that of atomic.Pointer.
func (x *Pointer[T]) Store(v *T) {
	access("Store", unsafe.Pointer(x))
	x.v.Store(v)
}

// Swap is that of atomic.Pointer.
func (x *Pointer[T]) Swap(v *T) (old *T) {
	access("Swap", unsafe.Pointer(x))
	return x.v.Swap(v)
}

// CompareAndSwap is that of atomic.Pointer.
func (x *Pointer[T]) CompareAndSwap(old, v *T) (swapped bool) {
	access("CompareAndSwap", unsafe.Pointer(x))
	return x.v.CompareAndSwap(old, v)
}
