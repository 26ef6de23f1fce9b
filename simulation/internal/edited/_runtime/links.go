// Functions for other packages.

package runtime

import _ "unsafe"

//go:linkname internal_sync_orderPoint internal/sync.orderPoint
func internal_sync_orderPoint() { orderPoint() }

//go:linkname atomic_orderPoint sync/atomic.orderPoint
func atomic_orderPoint() { orderPoint() }

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
