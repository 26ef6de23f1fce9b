// Package atomic has the types of sync/atomic for a primitive that suspendtest.Explore is to check access by access. In a build without the
// tag explore they are the types of sync/atomic, and cost nothing. With the tag they announce each access to the checker, see
// suspendtest.Accesses. Production code imports this package in place of sync/atomic.
package atomic

import "github.com/braidgo/braid/internal/atomicx"

// The types of sync/atomic that a checker follows.
type (
	Bool           = atomicx.Bool
	Int32          = atomicx.Int32
	Int64          = atomicx.Int64
	Uint32         = atomicx.Uint32
	Uint64         = atomicx.Uint64
	Pointer[T any] = atomicx.Pointer[T]
)

// Mutex is sync.Mutex, for a few instructions, which must not suspend.
type Mutex = atomicx.Mutex
