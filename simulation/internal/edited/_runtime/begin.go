// A process begins as BRAID_ORDER says.

package runtime

import (
	"internal/stringslite"
	"unsafe"
)

// Strategies, which a seed chooses unless BRAID_ORDER names one.
const (
	orderYields = iota // a goroutine goes to the end of the queue at many points
	orderDelays        // a goroutine lets many points of others pass, at few points (Emmi, Qadeer, Rakamarić: Delay-bounded scheduling, 2011)
	orderLevels        // goroutines have random priorities, which change at few points (Burckhardt et al.: PCT, 2010)
)

const (
	orderProcs  = 4       // the number of processors that a program sees
	orderMemory = 1 << 30 // bytes; no garbage is collected below
)

var (
	order       bool   // BRAID_ORDER is set
	orderFixed  bool   // the random bytes of the process are constants
	orderPicks  bool   // there are ordered goroutines
	orderSeed   uint64 // a hash of the seed
	orderHow    int
	orderRate   uint64 // the goroutine gives way at one point of this number
	orderSteps  uint64 // the number of points that all goroutines have passed
	orderStall  int64  // ns; a goroutine may stand still for so long
	orderStalls uint64 // a goroutine stands still at one point of this number
	orderSeen   int    // what GOMAXPROCS returns
)

// orderInit reads BRAID_ORDER. It runs before memory can be allocated.
//
//	BRAID_ORDER=12            the order of seed 12
//	BRAID_ORDER=12d           the same with the strategy d: y, d or l
//	BRAID_ORDER=12+50         goroutines may stand still for 50 ms
//	BRAID_ORDER=12:5fa01cp17  with one switch, at point 17 of the goroutine 5fa01c
//	BRAID_ORDER=12:@file      with the switches in a file, because a variable of the environment may have 128 KB
//	BRAID_ORDER_LOG=file      an existing, empty file for the points and switches
//	BRAID_ORDER_KEYS=1        without an order, but the hash keys of maps are those of each such process
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
		case s == "BRAID_ORDER_KEYS=1":
			orderFixed = true
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

// orderRandInit replaces the random bytes from which the hash keys of maps are made.
func orderRandInit(seed *[32]byte) {
	if order || orderFixed {
		for i := range seed {
			seed[i] = byte(i + 1)
		}
	}
}

// orderRandom returns a random number for the program, if the calling goroutine is ordered, the main goroutine, or the goroutine of a test. In the other
// goroutines the number would depend on the thread.
//
//go:nosplit
func orderRandom() (x uint64, ok bool) {
	gp := getg()
	id := gp.order.id | gp.order.test
	if id == 0 && (!order && !orderFixed || gp.goid != 1) {
		return 0, false
	}
	gp.order.rands++
	z := (orderSeed^id)*0x9e3779b97f4a7c15 + uint64(gp.order.rands)*0xd1b54a32d192ed03
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31), true
}
