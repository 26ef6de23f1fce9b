// Functions for other packages.

package runtime

import (
	"internal/abi"
	"unsafe"
)

//go:linkname internal_sync_orderPoint internal/sync.orderPoint
func internal_sync_orderPoint() { orderPoint() }

//go:linkname atomic_orderPoint sync/atomic.orderPoint
func atomic_orderPoint() { orderPoint() }

// Package sync and package unique call orderHold when an operation begins in which there is no point, and orderRelease when it ends. How many atomic
// operations it takes depends on what the process did before, and on garbage collections.

//go:linkname internal_sync_orderHold internal/sync.orderHold
func internal_sync_orderHold() { getg().order.holds++ }

//go:linkname internal_sync_orderRelease internal/sync.orderRelease
func internal_sync_orderRelease() { getg().order.holds-- }

//go:linkname sync_orderHold sync.orderHold
func sync_orderHold() { getg().order.holds++ }

//go:linkname sync_orderRelease sync.orderRelease
func sync_orderRelease() { getg().order.holds-- }

//go:linkname unique_orderHold unique.orderHold
func unique_orderHold() { getg().order.holds++ }

//go:linkname unique_orderRelease unique.orderRelease
func unique_orderRelease() { getg().order.holds-- }

//go:linkname maphash_orderTypeHash hash/maphash.orderTypeHash
func maphash_orderTypeHash(t *abi.Type, key unsafe.Pointer, seed uintptr) uintptr {
	return typehash(t, key, seed)
}

// sysrand_orderFill fills b with random bytes of orderRandom, and reports whether it has done so. A package may draw bytes before the test
// begins, and keep them.
//
//go:linkname sysrand_orderFill crypto/internal/sysrand.orderFill
func sysrand_orderFill(b []byte) bool {
	for ; len(b) > 0; b = b[min(8, len(b)):] {
		x, ok := orderRandom()
		if !ok {
			return false
		}
		for i := range b[:min(8, len(b))] {
			b[i], x = byte(x), x>>8
		}
	}
	return true
}

// orderWorld has the functions for simulations, which package simulation/internal/chance calls.
//
//go:linkname orderWorld
var orderWorld = struct {
	set   func(run, draws uint64)
	begin func(id uint64)
	end   func()
}{orderWorldSet, orderWorldBegin, orderWorldEnd}

func orderWorldSet(run, draws uint64) {
	if !orderPicks {
		orderSteps, orderInRow, orderRuns = 0, 0, 0
	}
	orderPicks = true
	orderSet(orderMix(run, 1), -1)
	orderSeed = orderMix(draws, 1)
}

func orderWorldBegin(id uint64) {
	gp := getg()
	gp.order = orderG{id: orderMix(id, 2) | 1}
	orderFirstLevel(gp)
}

func orderWorldEnd() { orderPicks = order }
