// A goroutine belongs to a node of a simulation. Goroutines that it starts belong to the same node, and so do the goroutines that call the
// functions of its timers. The node 0 is none.
//
// A node can crash. Its goroutines then never run again: the scheduler parks them when they become runnable. Channels and semaphores wake other
// waiters instead, and its timers do nothing. Their waits count as durable, so that they do not stop the clock of their bubble.
//
// All functions for nodes need GOMAXPROCS=1.

package runtime

import "unsafe"

// nodeG is the part of a g for nodes.
type nodeG struct {
	id   uint32
	lock uintptr // the mutex that the goroutine waits for, or 0; also 0 once it is known that a crashed node has locked the mutex
}

var (
	nodeSome    bool     // some goroutine belongs to a node
	nodeDead    []uint64 // a bit for each id: the node has crashed
	nodeBlocked int64    // a goroutine that waits for a mutex that a crashed node has locked, or 0
	nodeLast    [1 << 14]struct {
		mutex uintptr
		node  uint32
	} // the nodes that have locked a mutex last, by a hash of its address; another mutex may replace an entry
)

// nodeWorld has the functions for simulations, which package simulation/internal/chance calls.
//
//go:linkname nodeWorld
var nodeWorld = struct {
	set     func(id uint32)
	get     func() uint32
	crash   func(id uint32)
	blocked func() int64
}{nodeSet, nodeGet, nodeCrash, nodeTakeBlocked}

// nodeInside is a bit of a node: the goroutine executes a call for files, see package syscall. It has no order then, because the machine decides
// what there is to do: it may have old folders to remove, or have a file of the same name.
const nodeInside = 1 << 31

func nodeSet(id uint32) {
	gp := getg()
	switch was := gp.node.id & nodeInside; {
	case was == 0 && id&nodeInside != 0:
		gp.order.id, gp.order.later = 0, gp.order.id
	case was != 0 && id&nodeInside == 0:
		gp.order.id, gp.order.later = gp.order.later, 0
	}
	gp.node.id, nodeSome = id, true
}

func nodeGet() uint32 { return getg().node.id }

// nodeCrashed reports whether the node has crashed.
func nodeCrashed(id uint32) bool {
	return id != 0 && int(id/64) < len(nodeDead) && nodeDead[id/64]>>(id%64)&1 != 0
}

// nodeCrash crashes the node. None of its goroutines may be running.
func nodeCrash(id uint32) {
	for int(id/64) >= len(nodeDead) {
		nodeDead = append(nodeDead, 0)
	}
	nodeDead[id/64] |= 1 << (id % 64)
	forEachGRace(func(gp *g) {
		if readgstatus(gp)&^_Gscan != _Gwaiting {
			return
		}
		if gp.node.id == id {
			nodePark(gp)
		} else if gp.node.lock != 0 && !nodeCrashed(gp.node.id) {
			nodeFindHolder(gp)
		}
	})
}

// nodeIdle reports whether the wait of gp is durable. A goroutine of a node also waits durably for a channel or a WaitGroup that was made outside
// of its bubble, such as a variable of a package, because only goroutines of the simulation can end the wait.
func nodeIdle(gp *g) bool {
	switch gp.waitreason {
	case waitReasonChanReceive, waitReasonChanSend, waitReasonSelect, waitReasonSyncWaitGroupWait:
		return gp.node.id != 0
	}
	return gp.waitreason.isIdleInSynctest()
}

// nodePark changes the reason of a wait that no longer ends.
func nodePark(gp *g) {
	bubble, idle := gp.bubble, nodeIdle(gp)
	gp.waitreason = waitReasonCrashed
	if bubble != nil && !idle {
		lock(&bubble.mu)
		bubble.running--
		wake := bubble.maybeWakeLocked()
		unlock(&bubble.mu)
		if wake != nil {
			goready(wake, 0)
		}
	}
}

// nodeStop parks a runnable goroutine of a crashed node, and reports whether it has done so.
func nodeStop(gp *g) bool {
	if !nodeCrashed(gp.node.id) {
		return false
	}
	gp.waitreason = waitReasonCrashed
	casgstatus(gp, _Grunnable, _Gwaiting)
	return true
}

//go:linkname sync_nodeWaits sync.nodeWaits
func sync_nodeWaits(mutex unsafe.Pointer) { nodeWaits(mutex) }

//go:linkname nodeWaits internal/sync.nodeWaits
func nodeWaits(mutex unsafe.Pointer) {
	gp := getg()
	if gp.node.lock = uintptr(mutex); mutex != nil {
		nodeFindHolder(gp)
	}
}

// nodeLocks remembers that the calling goroutine has locked a mutex.
//
//go:linkname nodeLocks internal/sync.nodeLocks
func nodeLocks(mutex unsafe.Pointer) {
	if !nodeSome {
		return
	}
	p, id := uintptr(mutex), getg().node.id
	if e := nodeEntry(p); id != 0 || nodeLast[e].mutex == p {
		nodeLast[e].mutex, nodeLast[e].node = p, id
	}
}

func nodeEntry(mutex uintptr) uint64 { return orderMix(uint64(mutex), 3) % uint64(len(nodeLast)) }

// nodeFindHolder finds out, once for each wait, whether gp waits for a mutex that a crashed node has locked.
func nodeFindHolder(gp *g) {
	if e := nodeEntry(gp.node.lock); nodeLast[e].mutex == gp.node.lock && nodeCrashed(nodeLast[e].node) {
		nodeBlocked, gp.node.lock = int64(gp.goid), 0
	}
}

// nodeTakeBlocked returns nodeBlocked, and sets it to 0.
func nodeTakeBlocked() int64 {
	id := nodeBlocked
	nodeBlocked = 0
	return id
}
