// A goroutine belongs to a node of a simulation. Goroutines that it starts belong to the same node, and so do the goroutines that call the
// functions of its timers. The node 0 is none.

package runtime

import _ "unsafe"

// nodeWorld has the functions for simulations, which package simulation/internal/chance calls.
//
//go:linkname nodeWorld
var nodeWorld = struct {
	set func(id uint32)
	get func() uint32
}{
	func(id uint32) { getg().node = id },
	func() uint32 { return getg().node },
}
