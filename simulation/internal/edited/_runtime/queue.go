// The run queue of the P is the list of runnable goroutines.

package runtime

import "internal/runtime/atomic"

const orderStreak = 1 << 12 // the number of points of one goroutine after which another runs

var (
	orderRuns  uint64 // the goroutine that was picked last, by its goid
	orderInRow int    // points that it has passed, or times that an ordered goroutine was the next to run
	orderApart int    // times that another goroutine was the next to run; how often that happens is not part of the order
)

// orderOthers reports whether another ordered goroutine is runnable, and whether one of them has a higher level.
func orderOthers(pp *p, gp *g) (others, higher bool) {
	if next := pp.runnext.ptr(); next != nil && next.order.id != 0 {
		others, higher = true, next.order.level > gp.order.level
	}
	for h := pp.runqhead; h != pp.runqtail; h++ {
		if other := pp.runq[h%uint32(len(pp.runq))].ptr(); other.order.id != 0 {
			others, higher = true, higher || other.order.level > gp.order.level
			if orderHow != orderLevels {
				break
			}
		}
	}
	return others, higher
}

// orderPick moves the goroutine that runs next to the head of the run queue of pp, which the caller owns. Goroutines with the id 0 keep their
// places, and run when they are first.
func orderPick(pp *p) {
	if gomaxprocs != 1 {
		return
	}
	if orderReal != 0 {
		orderNanotime()
		orderReal = 0
	}
	size := uint32(len(pp.runq))
	if !sched.runq.empty() {
		lock(&sched.lock)
		for pp.runqtail-pp.runqhead < size-1 && !sched.runq.empty() {
			pp.runq[pp.runqtail%size].set(sched.runq.pop())
			atomic.StoreRel(&pp.runqtail, pp.runqtail+1)
		}
		unlock(&sched.lock)
	}
	if next := pp.runnext; next != 0 && pp.runqtail-pp.runqhead < size {
		pp.runnext = 0
		row := &orderInRow
		if next.ptr().order.id == 0 {
			row = &orderApart
		}
		if *row++; *row > orderStreak && pp.runqtail != pp.runqhead {
			*row = 0
			pp.runq[pp.runqtail%size] = next
			atomic.StoreRel(&pp.runqtail, pp.runqtail+1)
		} else {
			pp.runq[(pp.runqhead-1)%size] = next
			atomic.StoreRel(&pp.runqhead, pp.runqhead-1)
		}
	}
	h, n := pp.runqhead, pp.runqtail-pp.runqhead
	if n == 0 || pp.runnext != 0 {
		return
	}
	best := (*g)(nil)
	at := uint32(0)
	for i := range n {
		gp := pp.runq[(h+i)%size].ptr()
		if gp.order.id == 0 {
			if i == 0 {
				return
			}
			continue
		}
		switch {
		case best == nil:
		case gp.order.until > orderSteps && (best.order.until <= orderSteps || gp.order.until >= best.order.until):
			continue
		case gp.order.until <= orderSteps && best.order.until <= orderSteps && gp.order.level <= best.order.level:
			continue
		}
		best, at = gp, i
	}
	for ; at > 0; at-- {
		pp.runq[(h+at)%size] = pp.runq[(h+at-1)%size]
	}
	pp.runq[h%size].set(best)
	best.order.until = 0
	if orderLogFD >= 0 && best.goid != orderRuns {
		orderLog('r', best, 0, 0, "")
	}
	orderRuns = best.goid
}
