//go:build !explore

// Package atomicx has the types of the atomics and locks that Braid's primitives and schedulers use.
//
// The types are aliases, so they cost nothing. All atomics and locks that tasks share must have these types, so that the model checker sees
// the accesses. With the build tag explore, the types in traced.go replace the aliases.
package atomicx

import (
	"sync"
	"sync/atomic"
)

// These are the types of sync/atomic that Braid uses.
type (
	Bool           = atomic.Bool
	Int32          = atomic.Int32
	Int64          = atomic.Int64
	Uint32         = atomic.Uint32
	Uint64         = atomic.Uint64
	Pointer[T any] = atomic.Pointer[T]
)

// Mutex is a lock that must be held only for a few instructions, and never while a task suspends.
type Mutex = sync.Mutex

// LookAtContext announces to the model checker that the caller is about to look at a context of package context. The checker does not see
// the accesses of package context itself.
func LookAtContext() {}

// EndContext announces to the model checker that the caller is about to end a context of package context.
func EndContext() {}

// Closed reports whether done is closed.
func Closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// inlined makes the compiler inline the methods of these types in other packages. A package that uses a type only through an alias inlines
// only the methods that the package of the alias has inlined itself. Otherwise each access would be a function call.
func inlined() {
	var b Bool
	b.Store(b.Load())
	b.CompareAndSwap(b.Swap(true), false)
	var i32 Int32
	i32.Store(i32.Load())
	i32.CompareAndSwap(i32.Swap(i32.Add(1)), 0)
	var i64 Int64
	i64.Store(i64.Load())
	i64.CompareAndSwap(i64.Swap(i64.Add(1)), 0)
	var u32 Uint32
	u32.Store(u32.Load())
	u32.CompareAndSwap(u32.Swap(u32.Add(1)), u32.Or(u32.And(1)))
	var u64 Uint64
	var m Mutex
	m.Lock()
	u64.Store(u64.Load())
	u64.CompareAndSwap(u64.Swap(u64.Add(1)), u64.Or(u64.And(1)))
	m.Unlock()
}

var _ = inlined
