// Goroutines, timers and tests get their ids.

package runtime

import _ "unsafe"

// orderTimer is the part of a timer for orders: the function of a time.AfterFunc starts a goroutine, which needs an id.
type orderTimer struct {
	id    uint64
	fired uint32
	node  uint32 // the node of the goroutine that has made or reset the timer
}

// testing_orderBegin gives the calling goroutine the id of a test.
//
//go:linkname testing_orderBegin testing.orderBegin
func testing_orderBegin(name string) {
	if !order && !orderFixed {
		return
	}
	if orderKeys != "" {
		orderParse()
	}
	h := uint64(1)
	for i := range len(name) {
		h = orderMix(h, uint64(name[i]))
	}
	gp := getg()
	if !order {
		gp.order.test = h | 1
		return
	}
	gp.order = orderG{id: h | 1}
	orderFirstLevel(gp)
	if orderLogFD >= 0 {
		orderLog('n', gp, 0, 0, name)
	}
}

// orderBorn gives a new goroutine its id. The parent is a g0 if a timer calls the function of time.AfterFunc.
func orderBorn(gp, parent *g) {
	gp.order, gp.node = orderG{}, nodeG{}
	if parent.order.id != 0 {
		parent.order.born++
		gp.order.id = orderMix(parent.order.id, uint64(parent.order.born)) | 1
		orderFirstLevel(gp)
	}
}

func orderFirstLevel(gp *g) {
	if orderHow == orderLevels && orderActive(gp, orderKindLevel, 0) {
		gp.order.level = 1 + int64(orderDraw(gp, orderKindLevel, 0)>>33)
		if orderLogFD >= 0 {
			orderLog(orderKindLevel, gp, 0, 0, "")
		}
	}
}

// orderNewTimer gives a timer an id. It has to come before orderFire.
func orderNewTimer(t *timer) {
	gp := getg()
	t.order.node = gp.node.id
	if gp.order.id != 0 {
		gp.order.born++
		t.order.id = orderMix(gp.order.id, uint64(gp.order.born)) | 1
	}
}

// orderFire makes the caller, a g0, the parent of the goroutines that the function of t starts.
func orderFire(t *timer) {
	getg().node.id = t.order.node
	if t.order.id != 0 {
		t.order.fired++
		getg().order = orderG{id: orderMix(t.order.id, uint64(t.order.fired)) | 1}
	}
}

// orderFired ends orderFire.
func orderFired() {
	gp := getg()
	gp.order, gp.node = orderG{}, nodeG{}
}
