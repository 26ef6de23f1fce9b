//go:build explore

// Package atomicx has the types of the atomics and locks that Braid's primitives and schedulers use.
//
// This file is built with the tag explore. Its types work as the types of sync and sync/atomic, but announce each access to a Tracer in
// advance. See package explore.
package atomicx

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

// A Kind is the kind of an access.
type Kind uint8

// These are the kinds of accesses.
const (
	Load Kind = iota
	Store
	Swap
	CompareAndSwap
	Add
	And
	Or
	TryLock
)

func (k Kind) String() string {
	return [...]string{"Load", "Store", "Swap", "CompareAndSwap", "Add", "And", "Or", "TryLock"}[k]
}

// A Tracer controls the accesses to atomics and locks. The goroutine that is about to make an access first calls Access. Access may block,
// so that the access happens later.
type Tracer interface {
	Access(kind Kind, at unsafe.Pointer)

	// Unchanged is called after an access that has not changed the value, so that the Tracer can treat the access as a Load.
	Unchanged()

	// Look is called by a goroutine that is about to check whether done is closed.
	Look(done <-chan struct{})

	// Lock locks m, and Unlock unlocks it.
	Lock(m *sync.Mutex)
	Unlock(m *sync.Mutex)
}

var tracer atomic.Pointer[Tracer]

// Trace makes t the Tracer of all accesses from now on. If t is nil, accesses are no longer traced.
func Trace(t Tracer) {
	if t == nil {
		tracer.Store(nil)
	} else {
		tracer.Store(&t)
	}
}

// TraceUnlessTraced makes t the Tracer, unless there is one already, until end is called or another Tracer replaces it.
func TraceUnlessTraced(t Tracer) (end func()) {
	tracer.CompareAndSwap(nil, &t)
	return func() { tracer.CompareAndSwap(&t, nil) }
}

// Closed reports whether done is closed. It calls the Tracer's Look first.
func Closed(done <-chan struct{}) bool {
	if t := tracer.Load(); t != nil {
		(*t).Look(done)
	}
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// The address of contexts is announced for each access to a context of package context. All these accesses share one address, because the
// end of a context may end other contexts.
var contexts byte

// LookAtContext announces to the Tracer that the caller is about to look at a context of package context.
func LookAtContext() { access(Load, unsafe.Pointer(&contexts)) }

// EndContext announces to the Tracer that the caller is about to end a context of package context.
func EndContext() { access(Store, unsafe.Pointer(&contexts)) }

func access(kind Kind, at unsafe.Pointer) {
	if t := tracer.Load(); t != nil {
		(*t).Access(kind, at)
	}
}

// changed calls the Tracer's Unchanged if its argument is false.
func changed(yes bool) {
	if t := tracer.Load(); t != nil && !yes {
		(*t).Unchanged()
	}
}

// Mutex is a traced sync.Mutex.
type Mutex struct{ mu sync.Mutex }

// Lock works as in sync.Mutex.
func (m *Mutex) Lock() {
	if t := tracer.Load(); t != nil {
		(*t).Lock(&m.mu)
		return
	}
	m.mu.Lock()
}

// Unlock works as in sync.Mutex.
func (m *Mutex) Unlock() {
	if t := tracer.Load(); t != nil {
		(*t).Unlock(&m.mu)
		return
	}
	m.mu.Unlock()
}

// TryLock works as in sync.Mutex.
func (m *Mutex) TryLock() bool {
	access(TryLock, unsafe.Pointer(m))
	return m.mu.TryLock()
}

// A word is a traced version of the type A of sync/atomic, which holds a T.
type word[T comparable, A any, P interface {
	*A
	Load() T
	Store(v T)
	Swap(v T) (old T)
	CompareAndSwap(old, v T) (swapped bool)
}] struct{ v A }

// Load works as in sync/atomic.
func (x *word[T, A, P]) Load() T {
	access(Load, unsafe.Pointer(x))
	return P(&x.v).Load()
}

// Store works as in sync/atomic.
func (x *word[T, A, P]) Store(v T) {
	access(Store, unsafe.Pointer(x))
	if tracer.Load() == nil {
		P(&x.v).Store(v)
	} else {
		changed(P(&x.v).Swap(v) != v)
	}
}

// Swap works as in sync/atomic.
func (x *word[T, A, P]) Swap(v T) (old T) {
	access(Swap, unsafe.Pointer(x))
	old = P(&x.v).Swap(v)
	changed(old != v)
	return old
}

// CompareAndSwap works as in sync/atomic.
func (x *word[T, A, P]) CompareAndSwap(old, v T) (swapped bool) {
	access(CompareAndSwap, unsafe.Pointer(x))
	swapped = P(&x.v).CompareAndSwap(old, v)
	changed(swapped && old != v)
	return swapped
}

// A number is a word with the methods Add, And and Or.
type number[T ~int32 | ~int64 | ~uint32 | ~uint64, A any, P interface {
	*A
	Load() T
	Store(v T)
	Swap(v T) (old T)
	CompareAndSwap(old, v T) (swapped bool)
	Add(delta T) (new T)
	And(mask T) (old T)
	Or(mask T) (old T)
}] struct{ word[T, A, P] }

// Add works as in sync/atomic.
func (x *number[T, A, P]) Add(delta T) (new T) {
	access(Add, unsafe.Pointer(x))
	new = P(&x.v).Add(delta)
	changed(delta != 0)
	return new
}

// And works as in sync/atomic.
func (x *number[T, A, P]) And(mask T) (old T) {
	access(And, unsafe.Pointer(x))
	old = P(&x.v).And(mask)
	changed(old&mask != old)
	return old
}

// Or works as in sync/atomic.
func (x *number[T, A, P]) Or(mask T) (old T) {
	access(Or, unsafe.Pointer(x))
	old = P(&x.v).Or(mask)
	changed(old|mask != old)
	return old
}

// These are traced versions of the types of sync/atomic that Braid uses.
type (
	Bool           = word[bool, atomic.Bool, *atomic.Bool]
	Int32          = number[int32, atomic.Int32, *atomic.Int32]
	Int64          = number[int64, atomic.Int64, *atomic.Int64]
	Uint32         = number[uint32, atomic.Uint32, *atomic.Uint32]
	Uint64         = number[uint64, atomic.Uint64, *atomic.Uint64]
	Pointer[T any] = word[*T, atomic.Pointer[T], *atomic.Pointer[T]]
)
