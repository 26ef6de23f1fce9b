// This file makes the order of goroutines a function of a seed. The overlay adds it to package runtime.
//
// A goroutine has an id, a hash of its parent's id and of the number of goroutines that the parent has started. The goroutine of a test has a
// hash of the test's name. All other goroutines, for example those of the runtime, have the id 0. A draw is a hash of the seed, the id and a
// count of this goroutine, so a draw of one goroutine never changes a draw of another.
//
// An ordered goroutine (its id is not 0) may give way only at a point: before a lock, an operation on a channel, a select, an atomic operation,
// network I/O, and after a go statement. All ordered goroutines run on one P, whose run queue is the list of runnable goroutines:
//
//	orderPoint    draws whether the goroutine gives way, and for how many points of other goroutines (orderG.until)
//	orderNext     draws whether a goroutine that becomes runnable is the next to run, as in an unchanged runtime, or the last
//	orderPick     moves the goroutine that runs next to the head of the run queue
//	orderSelect   draws the order of the cases of a select
//
// A draw that changes something is a switch. Its key has the top 24 bits of the id, the kind of the draw, and the goroutine's count. Without any
// switch, the order is that of an unchanged runtime with one P.
//
// With BRAID_ORDER in the environment, time is ordered, too: the clock of timers and of package time advances by a constant at each point, and
// jumps to the next timer when all goroutines wait. See orderIdle for the exceptions.
package runtime

import (
	"internal/runtime/atomic"
	"internal/stringslite"
	"unsafe"
)

// orderG is the part of a g for orders.
type orderG struct {
	id     uint64
	until  uint64 // the goroutine lets others run until orderSteps has this value
	level  int64  // the goroutine with the highest level runs; only orderLevels sets levels
	points uint32 // the number of points that the goroutine has passed
	wakes  uint32 // the number of times that it became the next to run
	born   uint32 // the number of its children and timers
	rands  uint32 // the number of random numbers for its program
}

// orderTimer is the part of a timer for orders: the function of a time.AfterFunc starts a goroutine, which needs an id.
type orderTimer struct {
	id    uint64
	fired uint32
}

// Strategies, which a seed chooses unless BRAID_ORDER names one.
const (
	orderYields = iota // at many points, the goroutine goes to the end of the queue
	orderDelays        // at few points, the goroutine lets many points of others pass (Emmi, Qadeer, Rakamarić: Delay-bounded scheduling, 2011)
	orderLevels        // goroutines have random priorities, which change at few points (Burckhardt et al.: PCT, 2010)
)

// Kinds of draws.
const (
	orderKindPoint  = 'p'
	orderKindWake   = 'w'
	orderKindSelect = 's'
	orderKindLevel  = 'l' // the first priority of a goroutine
	orderKindStall  = 't'
)

const (
	orderPointTime = 100       // ns that pass at a point, and when a program reads the clock
	orderSpinTime  = 1000      // ns that pass in a call of Gosched
	orderSliceTime = 10e6      // ns that pass when a goroutine that passes no point is preempted
	orderStreak    = 1 << 12   // the number of points of one goroutine after which another runs
	orderForever   = 1 << 14   // points; no goroutine waits longer for others that can run
	orderProcs     = 4         // the number of processors that a program sees
	orderMemory    = 1 << 30   // bytes; no garbage is collected below
	orderGrace     = 2_000_000 // ns that the clock waits for the network before it jumps
	orderLate      = 100_000   // ns that a timer is late, so that the functions of timers of nearly the same moment run in any order
)

var (
	order       bool   // BRAID_ORDER is set
	orderPicks  bool   // there are ordered goroutines
	orderSeed   uint64 // a hash of the seed
	orderHow    int
	orderRate   uint64 // the goroutine gives way at one point of this number
	orderSteps  uint64 // the number of points that all goroutines have passed
	orderNow    int64  // the ordered clock
	orderWall   int64  // the wall clock minus orderNow
	orderBegun  int64  // orderNow at the start of the process
	orderReal   int64  // if not 0, the ordered clock has followed the real one since then
	orderSlices uint32 // preemptions that the clock has to count
	orderForked bool   // the program has started a process, so time is real
	orderSeen   int    // what GOMAXPROCS returns
	orderKeys   string // the switches that are on, if orderMasked
	orderMask   []uint64
	orderMasked bool
	orderStall  int64       // ns; a goroutine may stand still for so long
	orderStalls uint64      // a goroutine stands still at one point of this number
	orderRuns   uint64      // the goroutine that was picked last, by its goid
	orderInRow  int         // points that it has passed, or times that a goroutine was the next to run
	orderLogFD  int32       = -1
	orderPCs    [24]uintptr // the calls that orderLogCalls has found
)

func orderMix(a, b uint64) uint64 {
	z := a*0x9e3779b97f4a7c15 + b + 0x9e3779b97f4a7c15
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

func orderDraw(gp *g, kind uint64, n uint32) uint64 {
	return orderMix(orderSeed^gp.order.id, kind<<32|uint64(n))
}

// orderInit reads BRAID_ORDER. It runs before memory can be allocated.
//
//	BRAID_ORDER=12            the order of seed 12
//	BRAID_ORDER=12d           the same with the strategy d: y, d or l
//	BRAID_ORDER=12+50         goroutines may stand still for 50 ms
//	BRAID_ORDER=12:5fa01cp17  with one switch, at point 17 of the goroutine 5fa01c
//	BRAID_ORDER_LOG=file      an existing, empty file for the points and switches
func orderInit() {
	switch GOOS {
	case "darwin", "dragonfly", "freebsd", "linux", "netbsd", "openbsd":
	default:
		return
	}
	spec, logged := "", (*byte)(nil)
	for i := argc + 1; argv_index(argv, i) != nil; i++ {
		s := gostringnocopy(argv_index(argv, i))
		switch {
		case stringslite.HasPrefix(s, "BRAID_ORDER="):
			spec = s[len("BRAID_ORDER="):]
		case stringslite.HasPrefix(s, "BRAID_ORDER_LOG="):
			logged = (*byte)(add(unsafe.Pointer(argv_index(argv, i)), uintptr(len("BRAID_ORDER_LOG="))))
		}
	}
	if spec == "" {
		return
	}
	seed, rest := orderNumber(spec)
	how := -1
	if rest != "" {
		switch rest[0] {
		case 'y', 'd', 'l':
			how, rest = stringslite.Index("ydl", rest[:1]), rest[1:]
		}
	}
	if stringslite.HasPrefix(rest, "+") {
		var ms uint64
		ms, rest = orderNumber(rest[1:])
		orderStall = int64(ms) * 1e6
	}
	if stringslite.HasPrefix(rest, ":") {
		orderKeys, orderMasked = rest[1:], true
	}
	order, orderPicks = true, true
	orderNow, orderSeen = nanotime(), orderProcs
	orderBegun = orderNow
	for _, reason := range [...]waitReason{waitReasonSyncMutexLock, waitReasonSyncRWMutexRLock, waitReasonSyncRWMutexLock} {
		isIdleInSynctest[reason] = false // a goroutine outside of the bubble may hold the mutex, unlike in a simulation
	}
	orderSet(orderMix(seed, 1), how)
	if logged != nil {
		orderLogFD = open(logged, 1, 0)
	}
}

// orderSet sets the seed. A strategy below 0 is drawn.
func orderSet(seed uint64, how int) {
	orderSeed, orderHow = seed, how
	x := orderMix(seed, 2)
	if how < 0 {
		orderHow = []int{orderYields, orderYields, orderYields, orderDelays, orderDelays, orderLevels, orderLevels, orderLevels}[x%8]
	}
	x >>= 8
	orderStalls = []uint64{8, 32, 128}[x>>8%3]
	switch orderHow {
	case orderYields:
		orderRate = []uint64{2, 5, 8}[x%3]
	case orderDelays:
		orderRate = []uint64{3, 10, 40}[x%3]
	case orderLevels:
		orderRate = []uint64{10, 50, 250}[x%3]
	}
}

func orderNumber(s string) (n uint64, rest string) {
	for s != "" && s[0] >= '0' && s[0] <= '9' {
		n, s = n*10+uint64(s[0]-'0'), s[1:]
	}
	return n, s
}

// orderActive reports whether a switch is on. BRAID_ORDER lists the keys in ascending order.
func orderActive(gp *g, kind uint64, n uint32) bool {
	if !orderMasked {
		return true
	}
	key := gp.order.id>>40<<40 | kind<<32 | uint64(n)
	lo, hi := 0, len(orderMask)
	for lo < hi {
		if mid := (lo + hi) / 2; orderMask[mid] < key {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo < len(orderMask) && orderMask[lo] == key
}

// orderParse parses orderKeys: 6 digits of the id in base 16, the kind, the count, a comma.
func orderParse() {
	for s := orderKeys; len(s) > 7; {
		var id, n uint64
		for i := range 6 {
			c := uint64(s[i] - '0')
			if c > 9 {
				c -= 'a' - '0' - 10
			}
			id = id<<4 | c
		}
		kind := uint64(s[6])
		n, s = orderNumber(s[7:])
		orderMask = append(orderMask, id<<40|kind<<32|n)
		if s != "" {
			s = s[1:]
		}
	}
	orderKeys = ""
}

// testing_orderBegin gives the calling goroutine the id of a test.
//
//go:linkname testing_orderBegin testing.orderBegin
func testing_orderBegin(name string) {
	if !order {
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
	gp.order = orderG{id: h | 1}
	orderFirstLevel(gp)
	if orderLogFD >= 0 {
		orderLog('n', gp, 0, 0, name)
	}
}

// orderBorn gives a new goroutine its id. The parent is a g0 if a timer calls the function of time.AfterFunc.
func orderBorn(gp, parent *g) {
	gp.order = orderG{}
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

// orderPoint lets another goroutine run, if a draw says so.
func orderPoint() {
	if gp := getg(); gp.order.id != 0 {
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

// orderNext reports whether gp, which becomes runnable, is the next to run.
func orderNext(gp *g) bool {
	if gp.order.id == 0 || orderHow == orderLevels {
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

// orderSelect returns a number up to n, which decides the order of the cases of a select.
func orderSelect(gp *g, n int) uint32 {
	if n == 0 || !orderActive(gp, orderKindSelect, gp.order.points) {
		return uint32(n)
	}
	if n == 1 && orderLogFD >= 0 {
		orderLog(orderKindSelect, gp, gp.order.points, 0, "")
	}
	return uint32(orderMix(orderDraw(gp, orderKindSelect, gp.order.points), uint64(n)) % uint64(n+1))
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
		orderInRow++
		if orderInRow > orderStreak && pp.runqtail != pp.runqhead {
			orderInRow = 0
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

// orderRandom returns a random number for the program, if the calling goroutine is ordered or the main goroutine.
//
//go:nosplit
func orderRandom() (x uint64, ok bool) {
	gp := getg()
	if gp.order.id == 0 && (!order || gp.goid != 1) {
		return 0, false
	}
	gp.order.rands++
	z := (orderSeed^gp.order.id)*0x9e3779b97f4a7c15 + uint64(gp.order.rands)*0xd1b54a32d192ed03
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31), true
}

// orderRandInit replaces the random bytes from which the hash keys of maps are made.
func orderRandInit(seed *[32]byte) {
	if order {
		for i := range seed {
			seed[i] = byte(i + 1)
		}
	}
}

// orderNewTimer gives a timer an id. It has to come before orderFire.
func orderNewTimer(t *timer) {
	if gp := getg(); gp.order.id != 0 {
		gp.order.born++
		t.order.id = orderMix(gp.order.id, uint64(gp.order.born)) | 1
	}
}

// orderFire makes the caller, a g0, the parent of the goroutines that the function of t starts.
func orderFire(t *timer) {
	if t.order.id != 0 {
		t.order.fired++
		getg().order = orderG{id: orderMix(t.order.id, uint64(t.order.fired)) | 1}
	}
}

// orderFired ends orderFire.
func orderFired() { getg().order = orderG{} }

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

// The monitor looks at the slice of a goroutine that has run for long, and at a system call.
var orderSlice struct {
	tick uint32
	cpu  int64
}

var orderCall struct {
	tick uint32
	when int64
}

// orderMayPreempt reports whether the monitor may preempt the goroutine of pp, which has passed at least 10 ms of real time since the
// scheduler has run. An ordered goroutine is preempted after 200 ms of processor time, because it may wait in a loop without a point. A
// goroutine of a bubble is preempted after 5 s.
func orderMayPreempt(pp *p, since int64) bool {
	mp := pp.m.ptr()
	if mp == nil {
		return true
	}
	gp := mp.curg
	switch {
	case gp == nil:
		return true
	case gp.bubble != nil && !order:
		return since >= 5e9
	case gp.order.id == 0 || !order:
		return true
	}
	_, cpu := orderThread(mp.procid)
	if cpu < 0 {
		cpu = since
	}
	if orderSlice.tick != pp.schedtick {
		orderSlice.tick, orderSlice.cpu = pp.schedtick, cpu
		return false
	}
	if cpu-orderSlice.cpu < 200e6 {
		return false
	}
	atomic.Xadd(&orderSlices, 1)
	return true
}

// orderMayRetake reports whether the monitor may take the P of gp, which is in a system call: only if the thread sleeps in the kernel. The
// order would otherwise depend on the time that short calls take.
func orderMayRetake(pp *p, gp *g, now int64) bool {
	if !order || gp.order.id == 0 {
		return true
	}
	if orderCall.tick != pp.syscalltick {
		orderCall.tick, orderCall.when = pp.syscalltick, now
		return false
	}
	since := now - orderCall.when
	if since < 1e6 {
		return false
	}
	state, _ := orderThread(gp.m.procid)
	return state == 'S' || since > 1e9 || state == 0 && since > 20e6
}

// orderThread returns the state of a thread, and its processor time in ns, according to /proc. It returns 0 and -1 on systems without /proc.
func orderThread(id uint64) (state byte, cpu int64) {
	var name [64]byte
	var text [512]byte
	n := copy(name[:], "/proc/self/task/")
	n += orderPutNumber(name[n:], id, 10)
	copy(name[n:], "/stat")
	fd := open((*byte)(noescape(unsafe.Pointer(&name))), 0, 0)
	if fd < 0 {
		return 0, -1
	}
	got := int(read(fd, noescape(unsafe.Pointer(&text)), int32(len(text))))
	closefd(fd)
	at := got - 1
	for at >= 0 && text[at] != ')' { // the name of the program, in parentheses, may contain anything
		at--
	}
	if at < 0 {
		return 0, -1
	}
	field, ticks, number := 2, int64(0), int64(0)
	for _, c := range text[at+1 : got] {
		switch {
		case c == ' ':
			if field == 14 || field == 15 { // the ticks in user mode and in the kernel
				ticks += number
			}
			field, number = field+1, 0
		case field == 3:
			state = c
		case c >= '0' && c <= '9':
			number = number*10 + int64(c-'0')
		}
	}
	return state, ticks * 10e6
}

func orderPutNumber(b []byte, n, base uint64) int {
	var digits [20]byte
	i := len(digits)
	for {
		i--
		digits[i] = "0123456789abcdef"[n%base]
		if n /= base; n == 0 {
			return copy(b, digits[i:])
		}
	}
}

// orderHide removes the variables of orders from the environment that the program sees. A child process has no order.
func orderHide() {
	n := 0
	for _, s := range envs {
		if !stringslite.HasPrefix(s, "BRAID_ORDER") {
			envs[n] = s
			n++
		}
	}
	envs = envs[:n]
}

// orderLog writes a line: kind, id, count, value, and the text or the calls of the goroutine, as pairs of a function and a line of a file.
//
//	n  a test begins: its name            g  a go statement has started the goroutine with the id in value
//	q  a point                            r  a goroutine runs
//	p  it lets so many points pass        w  it will run last        s  it chooses a case
//	l  its first priority                 t  it stands still for so many ns
func orderLog(kind byte, gp *g, n uint32, value uint64, text string) {
	var line [256]byte
	i := orderPutHead(line[:], kind, gp, n, value)
	i += copy(line[i:len(line)-1], text)
	line[i] = '\n'
	write(uintptr(orderLogFD), noescape(unsafe.Pointer(&line)), int32(i+1))
}

// orderLogCalls is orderLog with the calls of the caller's goroutine.
func orderLogCalls(kind byte, gp *g, n uint32, value uint64) {
	var line [2048]byte
	i := orderPutHead(line[:], kind, gp, n, value)
	frames := CallersFrames(orderPCs[:Callers(4, orderPCs[:])])
	for more := true; more; {
		var f Frame
		f, more = frames.Next()
		if i+len(f.Function)+len(f.File)+32 < len(line) && f.Function != "" {
			i += copy(line[i:], f.Function)
			i += copy(line[i:], "\t")
			i += copy(line[i:], f.File)
			i += copy(line[i:], ":")
			i += orderPutNumber(line[i:], uint64(f.Line), 10)
			i += copy(line[i:], "\t")
		}
	}
	line[i] = '\n'
	write(uintptr(orderLogFD), noescape(unsafe.Pointer(&line)), int32(i+1))
}

func orderPutHead(line []byte, kind byte, gp *g, n uint32, value uint64) int {
	line[0], line[1] = kind, ' '
	i := 2
	for _, x := range [...]struct{ x, base uint64 }{{gp.order.id, 16}, {uint64(n), 10}, {value, 16}} {
		i += orderPutNumber(line[i:], x.x, x.base)
		i += copy(line[i:], " ")
	}
	return i
}

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
