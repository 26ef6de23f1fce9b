//go:build explore

// Package atomicx names the atomics and locks that Braid's primitives and schedulers are made of.
//
// Built with the tag explore, they are separate types. They work as the types of sync and sync/atomic, but announce each access to a Tracer
// before it, see package explore.
package atomicx

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

// A Kind of access.
type Kind uint8

// The kinds.
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

// A Tracer is called before each access, by the goroutine that is about to make it. It may hold the access back.
type Tracer interface {
	Access(kind Kind, at unsafe.Pointer)

	// Unchanged is called after an access that has written nothing, or the present value: it was no more than a Load.
	Unchanged()

	// Look is called by the goroutine that is about to look whether done is closed.
	Look(done <-chan struct{})

	// Lock locks m, and Unlock unlocks it.
	Lock(m *sync.Mutex)
	Unlock(m *sync.Mutex)
}

var tracer atomic.Pointer[Tracer]

// Trace announces all accesses to t from now on. A nil t ends this.
func Trace(t Tracer) {
	if t == nil {
		tracer.Store(nil)
	} else {
		tracer.Store(&t)
	}
}

// Closed reports whether done is closed, and announces the look before it.
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

// contexts is the address for all contexts of package context: the end of one ends others.
var contexts byte

// LookAtContext announces to the Tracer that the caller is about to look at a context of package context.
func LookAtContext() { access(Load, unsafe.Pointer(&contexts)) }

// EndContext announces that the caller is about to end such a context.
func EndContext() { access(Store, unsafe.Pointer(&contexts)) }

func access(kind Kind, at unsafe.Pointer) {
	if t := tracer.Load(); t != nil {
		(*t).Access(kind, at)
	}
}

// changed reports to the Tracer an access that has changed nothing.
func changed(yes bool) {
	if t := tracer.Load(); t != nil && !yes {
		(*t).Unchanged()
	}
}

// Mutex is a sync.Mutex.
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

// A word is an A of sync/atomic, which holds a T.
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

// A number is a word that can be counted with.
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

// The atomics of sync/atomic that Braid uses, but traced.
type (
	Bool           = word[bool, atomic.Bool, *atomic.Bool]
	Int32          = number[int32, atomic.Int32, *atomic.Int32]
	Int64          = number[int64, atomic.Int64, *atomic.Int64]
	Uint32         = number[uint32, atomic.Uint32, *atomic.Uint32]
	Uint64         = number[uint64, atomic.Uint64, *atomic.Uint64]
	Pointer[T any] = word[*T, atomic.Pointer[T], *atomic.Pointer[T]]
)
