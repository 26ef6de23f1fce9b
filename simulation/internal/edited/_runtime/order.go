// Package runtime makes the order of goroutines a function of a seed: the overlay adds these files to it.
//
// A goroutine has an id, a hash of its parent's id and of the number of goroutines that the parent has started. The goroutine of a test has a
// hash of the test's name. All other goroutines, for example those of the runtime, have the id 0. A draw is a hash of the seed, the id and a
// count of this goroutine, so a draw of one goroutine never changes a draw of another.
//
// An ordered goroutine (its id is not 0) may give way only at a point: before a lock, an operation on a channel, a select, an atomic operation,
// network I/O, and after a go statement. All ordered goroutines run on one P, whose run queue is the list of runnable goroutines:
//
//	order.go     at a point, a draw decides whether the goroutine gives way, and for how many points of others; the other draws
//	queue.go     the goroutine that runs next moves to the head of the run queue
//	switches.go  a draw that changes something is a switch, and BRAID_ORDER may list the switches that are on
//	born.go      the ids of goroutines, timers and tests
//	begin.go     BRAID_ORDER, at the start of the process
//	clock.go     ordered time
//	monitor.go   when the monitor may preempt a goroutine
//	log.go       what happens, for the report of hunt
//	links.go     functions for other packages
//	node.go      the nodes of a simulation
//	number.go    the hashes of pointers
package runtime

// orderG is the part of a g for orders.
type orderG struct {
	id     uint64
	until  uint64 // the goroutine lets others run until orderSteps has this value
	level  int64  // the goroutine with the highest level runs; only orderLevels sets levels
	points uint32 // the number of points that the goroutine has passed
	wakes  uint32 // the number of times that it became the next to run
	born   uint32 // the number of its children and timers
	rands  uint32 // the number of random numbers for its program
	keyed  uint32 // the number of objects whose pointer it was the first to hash

	holds uint32 // the number of calls of orderHold without an orderRelease: there are no points
	later uint64 // the id that the goroutine gets back when it leaves nodeInside
	test  uint64 // a hash of the name of the test whose function the goroutine calls, in a process without BRAID_ORDER
}

// orderPoint lets another goroutine run, if a draw says so.
func orderPoint() {
	if gp := getg(); gp.order.id != 0 && gp.order.holds == 0 {
		orderPoint1(gp)
	}
}

func orderPoint1(gp *g) {
	mp := gp.m
	if mp.curg != gp || mp.locks != 0 || mp.mallocing != 0 || mp.preemptoff != "" || mp.dying != 0 || mp.throwing != 0 || mp.p == 0 || gomaxprocs != 1 {
		return
	}
	gp.order.points++
	n := gp.order.points
	orderSteps++
	orderNow += orderPointTime
	if orderLogFD >= 0 {
		orderLogCalls('q', gp, n, 0)
	}
	if orderStall != 0 && orderDraw(gp, orderKindStall, n)%orderStalls == 0 && orderActive(gp, orderKindStall, n) {
		d := orderStall >> (orderDraw(gp, orderKindStall, n) >> 32 % 4 * 2)
		if orderLogFD >= 0 {
			orderLog(orderKindStall, gp, n, uint64(d), "")
		}
		timeSleep(d)
		return
	}
	others, higher := orderOthers(mp.p.ptr(), gp)
	if !others {
		return
	}
	if orderRuns != gp.goid {
		orderRuns, orderInRow = gp.goid, 0
	}
	if orderInRow++; orderInRow > orderStreak {
		orderInRow = 0
		orderStepBack(gp)
		goyield()
		return
	}
	x := orderDraw(gp, orderKindPoint, n)
	if x%orderRate != 0 || !orderActive(gp, orderKindPoint, n) {
		if higher {
			goyield()
		}
		return
	}
	k := uint64(0)
	switch orderHow {
	case orderDelays:
		k = 1 << (x >> 32 % 15)
	case orderLevels:
		gp.order.level = -int64(x >> 33)
	}
	gp.order.until = orderSteps + k
	if orderLogFD >= 0 {
		orderLog(orderKindPoint, gp, n, k, "")
	}
	goyield()
}

// orderStepBack makes gp run after the goroutines that are runnable now.
func orderStepBack(gp *g) {
	if gp.order.level = 0; orderHow == orderLevels {
		gp.order.level = -1<<40 - int64(orderSteps)
	}
}

// orderGosched is runtime.Gosched for an ordered goroutine.
func orderGosched() {
	orderNow += orderSpinTime
	orderSteps++
	orderStepBack(getg())
	goyield()
}

// orderStarted is the point after a go statement.
func orderStarted() {
	gp := getg()
	if gp.order.id == 0 {
		return
	}
	if orderLogFD >= 0 {
		orderLogCalls('g', gp, gp.order.born, orderMix(gp.order.id, uint64(gp.order.born))|1)
	}
	orderPoint()
}

// orderNext reports whether gp, which becomes runnable, is the next to run. If an ordered goroutine is the next, another one does not replace it.
func orderNext(gp *g) bool {
	if gp.order.id == 0 {
		next := getg().m.p.ptr().runnext.ptr()
		return next == nil || next.order.id == 0
	}
	if orderHow == orderLevels {
		return true
	}
	gp.order.wakes++
	n := gp.order.wakes
	if orderDraw(gp, orderKindWake, n)%2 == 0 || !orderActive(gp, orderKindWake, n) {
		return true
	}
	if orderLogFD >= 0 {
		orderLog(orderKindWake, gp, n, 0, "")
	}
	return false
}

// orderSelect returns a number up to n, which decides the order of the cases of a select. A goroutine that has passed many points draws even if
// the switch is off: a loop that ends when its select chooses another of two ready cases would never end.
func orderSelect(gp *g, n int) uint32 {
	active := orderActive(gp, orderKindSelect, gp.order.points)
	if n == 0 || !active && gp.order.points < orderStreak {
		return uint32(n)
	}
	if n == 1 && active && orderLogFD >= 0 {
		orderLog(orderKindSelect, gp, gp.order.points, 0, "")
	}
	return uint32(orderMix(orderDraw(gp, orderKindSelect, gp.order.points), uint64(n)) % uint64(n+1))
}

func orderDraw(gp *g, kind uint64, n uint32) uint64 {
	return orderMix(orderSeed^gp.order.id, kind<<32|uint64(n))
}

func orderMix(a, b uint64) uint64 {
	z := a*0x9e3779b97f4a7c15 + b + 0x9e3779b97f4a7c15
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}
