//go:build !explore

// Package atomicx names the atomics and locks that Braid's primitives and schedulers are made of.
//
// They are plain aliases: using them costs nothing. What is shared between tasks goes through these
// names and no others, so that a checker can replace them by traced ones in one place: built with the tag explore, they
// are the types of traced.go.
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
