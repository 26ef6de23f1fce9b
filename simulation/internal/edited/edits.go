package edited

import "slices"

// An edit replaces the text old in a file below GOROOT/src. The text must occur as often as times says.
type edit struct {
	file, old, changed string
	times              int  // 0 means 1; several means at least 1
	pattern            bool // old is a regular expression
	race               bool // there is an effect only with -race
	elsewhere          bool // there is an effect only on a machine without IPv6
}

// several is for a text that releases of Go have in different numbers.
const several = -1

var edits = slices.Concat(runtimeEdits, netEdits, osEdits)

var runtimeEdits = []edit{
	// Draw from chacha8, which the runtime does not use for its own decisions. A goroutine with an order has separate draws.
	{file: "runtime/select.go", old: "		j := cheaprandn(uint32(norder + 1))\n", changed: `		j := uint32(0)
		if gp.order.id != 0 {
			j = orderSelect(gp, norder)
		} else {
			j = randn(uint32(norder + 1))
		}
`},
	{file: "runtime/time.go", old: "t.rand = cheaprand()", changed: "t.rand = uint32(rand())"},
	// Let a bubble's clock advance while goroutines of the bubble wait for a mutex. The mutex's holder must be in the same bubble.
	{file: "runtime/runtime2.go", old: "	waitReasonSynctestSelect:        true,\n", changed: `	waitReasonSynctestSelect:        true,
	waitReasonSyncMutexLock:         true,
	waitReasonSyncRWMutexRLock:      true,
	waitReasonSyncRWMutexLock:       true,
	waitReasonCrashed:               true,
`},
	// Preempt a goroutine of a bubble after 5 s instead of 10 ms, and an ordered one after much processor time.
	{file: "runtime/proc.go", old: "pd.schedwhen+forcePreemptNS <= now {\n			preemptone(pp)\n", changed: `pd.schedwhen+forcePreemptNS <= now {
			if orderMayPreempt(pp, now-pd.schedwhen) {
				preemptone(pp)
			}
`},

	// Give each goroutine an identity.
	{file: "runtime/runtime2.go", old: "	bubble  *synctestBubble", changed: "	order   orderG\n	node    nodeG\n	bubble  *synctestBubble"},
	{file: "runtime/proc.go", old: "	newg.parentGoid = callergp.goid\n", changed: "	newg.parentGoid = callergp.goid\n	orderBorn(newg, callergp)\n"},
	{file: "runtime/proc.go", old: "		newg.bubble = callergp.bubble\n", changed: "		newg.bubble = callergp.bubble\n		newg.node.id = callergp.node.id\n"},
	{file: "runtime/time.go", old: "	return t.reset(when, period)\n", changed: "	t.order.node = getg().node.id\n	return t.reset(when, period)\n"},
	{file: "runtime/time.go", old: "	isSending atomic.Int32\n}", changed: "	isSending atomic.Int32\n\n	order orderTimer\n}"},
	{file: "runtime/time.go", old: "	t.modify(when, period, f, arg, 0)\n	t.init = true\n", changed: "	orderNewTimer(&t.timer)\n	t.modify(when, period, f, arg, 0)\n	t.init = true\n"},
	{file: "runtime/time.go", old: "\n	f(arg, seq, delay)\n", changed: "\n	if !nodeCrashed(t.order.node) {\n		orderFire(t)\n		f(arg, seq, delay)\n		orderFired()\n	}\n"},
	{file: "testing/testing.go", old: "\n	fn(t)\n", changed: "\n	orderBegin(t.name)\n	fn(t)\n"},
	{file: "testing/testing.go", old: "func tRunner(t *T, fn func(t *T)) {\n", changed: "//go:linkname orderBegin\nfunc orderBegin(name string)\n\nfunc tRunner(t *T, fn func(t *T)) {\n"},

	// Stop the goroutines and timers of a node that has crashed.
	{file: "runtime/runtime2.go", old: "	waitReasonCleanupWait                             // \"cleanup wait\"\n", changed: "	waitReasonCleanupWait                             // \"cleanup wait\"\n	waitReasonCrashed                                 // \"crashed\"\n"},
	{file: "runtime/runtime2.go", old: "	waitReasonCleanupWait:           \"cleanup wait\",\n", changed: "	waitReasonCleanupWait:           \"cleanup wait\",\n	waitReasonCrashed:               \"crashed\",\n"},
	{file: "runtime/proc.go", old: "	// If about to schedule a not-normal goroutine", changed: "	if nodeStop(gp) {\n		goto top\n	}\n\n	// If about to schedule a not-normal goroutine"},
	{file: "runtime/time.go", old: "	if t.period > 0 {\n", changed: "	if t.period > 0 && !nodeCrashed(t.order.node) {\n"},
	{file: "runtime/chan.go", old: "			sgp.next = nil // mark as removed (see dequeueSudoG)\n		}\n", changed: "			sgp.next = nil // mark as removed (see dequeueSudoG)\n		}\n		if nodeCrashed(sgp.g.node.id) {\n			continue\n		}\n"},
	{file: "runtime/sema.go", old: "	s, t0, tailtime := root.dequeue(addr)\n", changed: "	s, t0, tailtime := root.dequeue(addr)\n	for s != nil && nodeCrashed(s.g.node.id) {\n		root.nwait.Add(-1)\n		s, t0, tailtime = root.dequeue(addr)\n	}\n"},

	{file: "runtime/synctest.go", old: "		if gp.waitreason.isIdleInSynctest() {\n", changed: "		if nodeIdle(gp) {\n", times: 2},

	// Remember which node holds a mutex.
	{file: "internal/sync/mutex.go", old: "			runtime_SemacquireMutex(&m.sema, queueLifo, 2)\n", changed: "			nodeWaits(unsafe.Pointer(m))\n			runtime_SemacquireMutex(&m.sema, queueLifo, 2)\n			nodeWaits(nil)\n"},
	{file: "sync/rwmutex.go", old: "		runtime_SemacquireRWMutexR(&rw.readerSem, false, 0)\n", changed: "		nodeWaits(unsafe.Pointer(&rw.w))\n		runtime_SemacquireRWMutexR(&rw.readerSem, false, 0)\n		nodeWaits(nil)\n"},

	// The hash of a pointer does not depend on the address.
	{file: "internal/runtime/maps/map.go", old: "typ.Hasher(", changed: "orderHash(typ, ", times: 5},
	{file: "internal/runtime/maps/runtime.go", old: "typ.Hasher(", changed: "orderHash(typ, ", times: several},
	{file: "internal/runtime/maps/runtime_fast64.go", old: `(?:typ\.Hasher\(abi\.NoEscape\(unsafe\.Pointer\(&k\)\)|memHash64(?:AES|Fallback)\((?:key|uint64\(\(uintptr\)\(key\)\))), m\.seed\)`, changed: "orderHash64(typ, key, m.seed, $0)", times: several, pattern: true},
	{file: "internal/runtime/maps/table.go", old: "typ.Hasher(", changed: "orderHash(typ, ", times: 4},
	{file: "runtime/alg.go", old: "func typehash(t *_type, p unsafe.Pointer, h uintptr) uintptr {\n	if t.TFlag&abi.TFlagRegularMemory != 0 {\n", changed: "func typehash(t *_type, p unsafe.Pointer, h uintptr) uintptr {\n	switch t.Kind() {\n	case abi.Pointer, abi.Chan, abi.UnsafePointer:\n		return orderHashPointer(p, h)\n	}\n	if t.TFlag&abi.TFlagRegularMemory != 0 && t.PtrBytes == 0 {\n"},
	{file: "hash/maphash/maphash.go", old: "	return comparableHash(v, seed)\n", changed: "	return orderComparable(v, seed)\n"},
	{file: "hash/maphash/maphash.go", old: "	writeComparable(h, x)\n", changed: "	h.state.s = orderComparable(x, h.state)\n"},
	{file: "runtime/mheap.go", old: "	switch s.kind {\n	case _KindSpecialFinalizer:\n", changed: "	switch s.kind {\n	case orderKindNumber:\n		orderForget(s)\n	case _KindSpecialFinalizer:\n"},

	// Begin as BRAID_ORDER says: one processor, no garbage collection, no random bytes.
	{file: "runtime/proc.go", old: "	randinit() // must run before mallocinit,", changed: "	orderInit()\n	randinit() // must run before mallocinit,"},
	{file: "runtime/proc.go", old: "	goargs()\n	goenvs()\n", changed: "	goargs()\n	goenvs()\n	orderHide()\n"},
	{file: "runtime/proc.go", old: `(?:alginit|maps\.AlgInit)\(\)[^\n]*\n`, pattern: true, changed: `x86, arm := cpu.X86.HasAES, cpu.ARM64.HasAES
	if order || orderFixed { // maps hash as on a processor without AES
		cpu.X86.HasAES, cpu.ARM64.HasAES = false, false
	}
	$0	cpu.X86.HasAES, cpu.ARM64.HasAES = x86, arm
`},
	{file: "runtime/rand.go", old: "	globalRand.state.Init(*seed)\n", changed: "	orderRandInit(seed)\n	globalRand.state.Init(*seed)\n"},
	{file: "runtime/rand.go", old: "func rand() uint64 {\n", changed: "func rand() uint64 {\n	if x, ok := orderRandom(); ok {\n		return x\n	}\n"},
	{file: "crypto/internal/sysrand/rand.go", old: "func Read(b []byte) {\n", changed: "func Read(b []byte) {\n	if orderFill(b) {\n		return\n	}\n"},
	{file: "runtime/proc.go", old: "	if procresize(procs) != nil {\n		throw(\"unknown runnable", changed: "	if order {\n		procs, sched.customGOMAXPROCS = 1, true\n	}\n	if procresize(procs) != nil {\n		throw(\"unknown runnable"},
	{file: "runtime/debug.go", old: "func NumCPU() int {\n", changed: "func NumCPU() int {\n	if order {\n		return orderProcs\n	}\n"},
	{file: "runtime/debug.go", old: "func GOMAXPROCS(n int) int {\n", changed: `func GOMAXPROCS(n int) int {
	if order {
		was := orderSeen
		if n > 0 {
			orderSeen = n
		}
		return was
	}
`},
	{file: "runtime/mgcpacer.go", old: "func readGOGC() int32 {\n", changed: "func readGOGC() int32 {\n	if order {\n		return -1\n	}\n"},
	{file: "runtime/mgcpacer.go", old: "func readGOMEMLIMIT() int64 {\n", changed: "func readGOMEMLIMIT() int64 {\n	if order {\n		return orderMemory\n	}\n"},

	// Decide which goroutine runs.
	{file: "runtime/proc.go", old: "const randomizeScheduler = raceenabled\n", changed: "const randomizeScheduler = false\n", race: true},
	{file: "runtime/proc.go", old: "	if randomizeScheduler && next && randn(2) == 0 {", changed: "	if next && orderPicks && !orderNext(gp) {\n		next = false\n	}\n	if randomizeScheduler && next && randn(2) == 0 {"},
	{file: "runtime/proc.go", old: "func runqget(pp *p) (gp *g, inheritTime bool) {\n", changed: "func runqget(pp *p) (gp *g, inheritTime bool) {\n	if orderPicks {\n		orderPick(pp)\n	}\n"},
	{file: "runtime/proc.go", old: "func Gosched() {\n", changed: "func Gosched() {\n	if getg().order.id != 0 {\n		orderGosched()\n		return\n	}\n"},
	{file: "runtime/proc.go", old: "		// Retake the P if it's there for more than 1 sysmon tick", changed: "		if !orderMayRetake(pp, thread.gp, now) {\n			thread.resume()\n			goto done\n		}\n		// Retake the P if it's there for more than 1 sysmon tick"},
	{file: "runtime/proc.go", old: "	if netpollinited() && lastpoll != 0 && lastpoll+10*1000*1000 < now {", changed: "	if !order && netpollinited() && lastpoll != 0 && lastpoll+10*1000*1000 < now {"},
	{file: "runtime/sema.go", old: "func internal_sync_nanotime() int64 {\n", changed: "func internal_sync_nanotime() int64 {\n	if orderPicks {\n		return 1 // or a mutex would change to its starvation mode after a real millisecond\n	}\n"},

	// A goroutine that returns from a system call without a P counts as runnable, or as in a call, at each moment.
	{file: "runtime/proc.go", old: "	decGSyscallNoP(getg().m)\n	dropg()\n	lock(&sched.lock)\n", changed: "	dropg()\n	lock(&sched.lock)\n	decGSyscallNoP(getg().m)\n"},

	// Order time.
	{file: "runtime/proc.go", old: "	// Spinning Ms: steal work from other Ps.\n", changed: "	if orderIdle(pollUntil) {\n		goto top\n	}\n\n	// Spinning Ms: steal work from other Ps.\n"},
	{file: "runtime/time.go", old: "	return time_now()\n", changed: "	return orderTime()\n"},
	{file: "runtime/time.go", old: "	return nanotime()\n", changed: "	return orderReadClock()\n"},
	{file: "runtime/time.go", old: "now = nanotime()\n", changed: "now = orderNanotime()\n", times: 2},
	{file: "runtime/time.go", old: "	now := nanotime()\n", changed: "	now := orderNanotime()\n"},
	{file: "runtime/netpoll.go", old: "d += nanotime()", changed: "d += orderNanotime()"},
	{file: "runtime/proc.go", old: "func syscall_runtime_AfterFork() {\n", changed: "func syscall_runtime_AfterFork() {\n	orderForked = true\n"},

	// Points.
	{file: "runtime/proc.go", old: "		if mainStarted {\n			wakep()\n		}\n	})\n}\n", changed: "		if mainStarted {\n			wakep()\n		}\n	})\n	orderStarted()\n}\n"},
	{file: "runtime/chan.go", old: "func chansend1(c *hchan, elem unsafe.Pointer) {\n", changed: "func chansend1(c *hchan, elem unsafe.Pointer) {\n	orderPoint()\n"},
	{file: "runtime/chan.go", old: "func chanrecv1(c *hchan, elem unsafe.Pointer) {\n", changed: "func chanrecv1(c *hchan, elem unsafe.Pointer) {\n	orderPoint()\n"},
	{file: "runtime/chan.go", old: "func chanrecv2(c *hchan, elem unsafe.Pointer) (received bool) {\n", changed: "func chanrecv2(c *hchan, elem unsafe.Pointer) (received bool) {\n	orderPoint()\n"},
	{file: "runtime/chan.go", old: "func closechan(c *hchan) {\n", changed: "func closechan(c *hchan) {\n	orderPoint()\n"},
	{file: "runtime/chan.go", old: "func selectnbsend(c *hchan, elem unsafe.Pointer) (selected bool) {\n", changed: "func selectnbsend(c *hchan, elem unsafe.Pointer) (selected bool) {\n	orderPoint()\n"},
	{file: "runtime/chan.go", old: "func selectnbrecv(elem unsafe.Pointer, c *hchan) (selected, received bool) {\n", changed: "func selectnbrecv(elem unsafe.Pointer, c *hchan) (selected, received bool) {\n	orderPoint()\n"},
	{file: "runtime/select.go", old: "	gp := getg()\n	if debugSelect {", changed: "	gp := getg()\n	orderPoint()\n	if debugSelect {"},
	{file: "runtime/netpoll.go", old: "func poll_runtime_pollReset(pd *pollDesc, mode int) int {\n", changed: "func poll_runtime_pollReset(pd *pollDesc, mode int) int {\n	orderPoint()\n"},
	{file: "internal/sync/runtime.go", old: "//go:linkname throw\n", changed: "//go:linkname orderPoint\nfunc orderPoint()\n\n//go:linkname orderHold\nfunc orderHold()\n\n//go:linkname orderRelease\nfunc orderRelease()\n\n//go:linkname throw\n"},
	// An operation on a sync.Map or a sync.Pool, and unique.Make, are one step.
	{file: "internal/sync/hashtriemap.go", old: `(?m)^func \(ht \*HashTrieMap\[K, V\]\) (?:Load|LoadOrStore|Swap|CompareAndSwap|LoadAndDelete|CompareAndDelete)\(.*\{\n`, changed: "$0	orderPoint()\n	orderHold()\n	defer orderRelease()\n", times: 6, pattern: true},
	{file: "internal/sync/hashtriemap.go", old: "	ht.iter(ht.root.Load(), yield)\n", changed: `	orderHold()
	defer orderRelease()
	ht.iter(ht.root.Load(), func(k K, v V) bool {
		orderRelease()
		defer orderHold()
		return yield(k, v)
	})
`, times: 2},
	{file: "unique/handle.go", old: "	ma, ok := uniqueMaps.Load(typ)\n", changed: "	orderHold()\n	defer orderRelease()\n	ma, ok := uniqueMaps.Load(typ)\n"},
	{file: "sync/pool.go", old: "	allPoolsMu.Lock()\n	defer", changed: "	orderHold()\n	defer orderRelease()\n	allPoolsMu.Lock()\n	defer"},
	{file: "internal/sync/mutex.go", old: "func (m *Mutex) Lock() {\n", changed: "func (m *Mutex) Lock() {\n	orderPoint()\n	m.lock()\n	nodeLocks(unsafe.Pointer(m))\n}\n\nfunc (m *Mutex) lock() {\n"},
	{file: "internal/sync/mutex.go", old: "func (m *Mutex) TryLock() bool {\n", changed: "func (m *Mutex) TryLock() bool {\n	orderPoint()\n	if !m.tryLock() {\n		return false\n	}\n	nodeLocks(unsafe.Pointer(m))\n	return true\n}\n\nfunc (m *Mutex) tryLock() bool {\n"},
	{file: "sync/atomic/type.go", old: "\nimport \"unsafe\"\n", changed: "\nimport \"unsafe\"\n\n//go:linkname orderPoint\nfunc orderPoint()\n"},
	{file: "sync/atomic/type.go", old: `(?m)^(func \(x \*(?:Bool|Int32|Int64|Uint32|Uint64|Uintptr|Pointer\[T\])\) [A-Z]\w+\([^{]*\{)`, changed: "$1 orderPoint();", times: 43, pattern: true},
	{file: "sync/atomic/value.go", old: `(?m)^(func \(v \*Value\) [A-Z]\w+\([^{]*\{)`, changed: "$1 orderPoint();", times: 4, pattern: true},
}
