//go:build !explore

package explore

import "github.com/braidgo/braid/internal/atomicx"

// Built says whether this build supports Config.Fine.
const Built = false

// A face does nothing in a build without the tag explore, because package atomicx then has no tracer.
type face struct{}

func (*face) trace(fine bool) (undo func()) {
	if fine {
		panic("explore: built without the tag explore")
	}
	return func() {}
}

func (*face) attach(*World) {}

// notice assumes that a program with package suspendtest/atomic uses it.
func (e *explorer) notice() (end func()) {
	e.atomics = atomicx.Offered()
	return func() {}
}
