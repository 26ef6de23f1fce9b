package runtime

import _ "unsafe"

// syscall_nodeHere returns the node of the calling goroutine.
//
//go:linkname syscall_nodeHere syscall.nodeHere
//go:nosplit
func syscall_nodeHere() uint32 { return getg().node.id }

//go:linkname os_nodeHere os.nodeHere
func os_nodeHere() uint32 { return getg().node.id }
