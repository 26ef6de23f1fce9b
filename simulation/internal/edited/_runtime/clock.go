// With BRAID_ORDER in the environment, the clock of timers and of package time advances by a constant at each point, and jumps to the next timer
// when all goroutines wait. See orderIdle for the exceptions.

package runtime

import "internal/runtime/atomic"

const (
	orderPointTime = 100       // ns that pass at a point, and when a program reads the clock
	orderSpinTime  = 1000      // ns that pass in a call of Gosched
	orderSliceTime = 10e6      // ns that pass when a goroutine that passes no point is preempted
	orderGrace     = 2_000_000 // ns that the clock waits for the network before it jumps
	orderLate      = 100_000   // ns that a timer is late, so that the functions of timers of nearly the same moment run in any order
)

var (
	orderNow    int64  // the ordered clock
	orderWall   int64  // the wall clock minus orderNow
	orderBegun  int64  // orderNow at the start of the process
	orderReal   int64  // if not 0, the ordered clock has followed the real one since then
	orderSlices uint32 // preemptions that the clock has to count
	orderForked bool   // the program has started a process, so time is real
)

// orderNanotime returns the time for timers.
func orderNanotime() int64 {
	if !order {
		return nanotime()
	}
	if orderReal != 0 {
		now := nanotime()
		orderNow += now - orderReal
		orderReal = now
	}
	if n := atomic.Xchg(&orderSlices, 0); n != 0 {
		orderNow += int64(n) * orderSliceTime
	}
	return orderNow
}

// orderReadClock is orderNanotime for package time.
func orderReadClock() int64 {
	if order {
		orderNow += orderPointTime
	}
	return orderNanotime()
}

// orderTime is time_now for package time. The wall clock begins at a whole minute, so that a program that looks at seconds does the same again.
func orderTime() (sec int64, nsec int32, mono int64) {
	if !order {
		return time_now()
	}
	if orderWall == 0 {
		sec, _, _ = time_now()
		orderWall = sec/60*60*1e9 - orderBegun
	}
	mono = orderReadClock()
	return (orderWall + mono) / 1e9, int32((orderWall + mono) % 1e9), mono
}

// orderIdle is called when no goroutine is runnable. It advances the clock to until, the time of the next timer, and reports whether to look
// for runnable goroutines again. While an ordered goroutine is in a system call, and after the program has started a process, the clock follows
// real time instead. If goroutines wait for the network or for signals, orderIdle first gives the kernel a moment.
func orderIdle(until int64) bool {
	if !order || until == 0 || gcBlackenEnabled != 0 {
		return false
	}
	outside := orderForked
	if !outside {
		forEachGRace(func(gp *g) {
			outside = outside || gp.order.id != 0 && readgstatus(gp)&^_Gscan == _Gsyscall
		})
	}
	if outside {
		if orderReal == 0 {
			orderReal = nanotime()
		}
		return false
	}
	if netpollinited() && netpollAnyWaiters() {
		list, delta := netpoll(orderGrace)
		if !list.empty() {
			injectglist(&list)
			netpollAdjustWaiters(delta)
			return true
		}
	}
	if sig.inuse {
		usleep(10 * orderGrace / 1000)
		if !runqempty(getg().m.p.ptr()) || !sched.runq.empty() {
			return true
		}
	}
	orderNow = max(orderNow, until+orderLate)
	return true
}
