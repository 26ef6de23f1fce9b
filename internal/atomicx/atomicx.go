//go:build !explore

// Package atomicx names the atomics and locks that Braid's primitives and schedulers are made of.
//
// They are plain aliases: using them costs nothing. Variables that tasks share have these types and no others. So a checker replaces
// them by traced types in one place: built with the tag explore, they are the types of traced.go.
package atomicx

import (
	"sync"
	"sync/atomic"
)

// The atomics of sync/atomic that Braid uses.
type (
	Bool           = atomic.Bool
	Int32          = atomic.Int32
	Int64          = atomic.Int64
	Uint32         = atomic.Uint32
	Uint64         = atomic.Uint64
	Pointer[T any] = atomic.Pointer[T]
)

// Mutex is a lock that is held for a few instructions and never across a suspension.
type Mutex = sync.Mutex

// LookAtContext announces to a checker, which does not see it otherwise, that the caller is about to look at a context of package context.
func LookAtContext() {}

// EndContext announces that the caller is about to end such a context.
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

// inlined is here for the compiler. A package that uses a type only by an alias inlines the methods that the package of the alias has
// inlined itself. Without this each access would be a call.
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
