// Package atomic replaces sync/atomic in a primitive that suspendtest.Explore checks access by access. In a build without the
// tag explore, its types are the types of sync/atomic and add no cost. With the tag, the types report each access to Explore,
// see suspendtest.ExploreOptions.Accesses. The production code of the primitive imports this package in place of sync/atomic.
package atomic

import "github.com/braidgo/braid/internal/atomicx"

// These types replace the types of sync/atomic that have the same names.
type (
	Bool           = atomicx.Bool
	Int32          = atomicx.Int32
	Int64          = atomicx.Int64
	Uint32         = atomicx.Uint32
	Uint64         = atomicx.Uint64
	Pointer[T any] = atomicx.Pointer[T]
)

func init() { atomicx.Offer() } // Explore then mentions the option Accesses

// Mutex replaces sync.Mutex for short critical sections. A task must not suspend while it holds a Mutex.
type Mutex = atomicx.Mutex
