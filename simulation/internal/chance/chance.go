// Package chance sets the random states of Go's runtime, so that a test can repeat a run of a stock program exactly.
//
// A Go program is random in several places: select chooses among ready channels, a range over a map begins anywhere, timers of the
// same moment fire in any order, and math/rand is seeded by the system. The runtime draws all these random numbers from two states in
// an m, its structure for a thread:
//
//   - chacha8: maps, the functions of math/rand and math/rand/v2, hash/maphash, and under -race the order of the run queue
//   - cheaprand: select, and timers of the same moment in a bubble of testing/synctest
//
// After a Seed, a program draws the same numbers as after an earlier Seed with the same value. The clock, the kernel and crypto/rand
// are not affected.
//
//	state, err := chance.Open() // once in a process
//	state.Seed(seed)            // both states of this thread
//	state.SeedCheap(seed)       // cheaprand alone
//
// # The thread
//
// Seed sets the states of the caller's thread, and a goroutine draws from the states of the thread on which it runs. To keep all draws
// on one thread, either lock the goroutine that calls Seed to its thread and draw there, or set GOMAXPROCS to 1 and lock no goroutine.
// All goroutines then run on one thread as long as none blocks in a system call. A goroutine that moves to another thread draws from a
// state that was not set, so the caller should seed again often. The runtime itself also draws from cheaprand, for caches and samples
// that outlive a run. SeedCheap is fast, so the caller should call it often.
//
// # How the states are found
//
// This package does not contain the offsets of the states, and does not depend on the version of Go. Instead, the function Open finds
// them by means of runtime.getm, runtime.rand and runtime.cheaprand. The runtime marks all three as linked from other modules, so
// they must keep working (go.dev/issue/67401).
//
// Open copies the m before and after a draw. A draw from chacha8 changes one word, the index into its buffer, and the element of the
// buffer just before this index is the value that was drawn. A draw from cheaprand changes one or two words, which are the other
// state. Open restores these words and checks that the next draw returns the same value, before it writes anything else there. Then
// Open verifies both states by their effects. After a Seed, the draws must equal the draws of a ChaCha8 from math/rand/v2 with the
// same key. Selects, ranges over maps, math/rand and maphash must repeat for the same seed, and must differ for another seed.
//
// # When Go changes
//
// A new version of Go may move a state, change its generator, or use another state for select. Open also finds a state at a new offset,
// and a new cheap generator; Go 1.27 has both changes. In all other cases Open returns an error, and never a State that is not
// verified. The simulation then runs without this package, and says so. If one of the three functions can no longer be linked, tests
// that import this package do not build. CI also runs the tests of this package with the next release of Go.
//
// The hash keys of maps differ between processes, so the order of a range over a map of more than 8 entries can be repeated only
// within one process. On Linux, BRAID_RANDOM=1 in the environment makes the keys equal in all processes, see keys_linux.go.
//
// # Where it is tested, with Go 1.26.8
//
//   - linux/amd64, also with Go 1.27.4: the states (also with -race), Calm, BRAID_RANDOM and the overlay of the runtime.
//   - linux/386: the states, with another cheap generator, and Calm. BRAID_RANDOM has no effect, and the overlay is not tested.
//   - linux/arm64: the package compiles. According to the debug information, its m has the same layout as on linux/amd64.
//   - darwin/arm64, windows/amd64: the package compiles. The states have other offsets. There is no AT_RANDOM and no SCHED_IDLE.
//
// Only tests link this package, through simulation; internal/testrig/layers tests this.
package chance

import (
	"encoding/binary"
	"errors"
	"hash/maphash"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"syscall"
	"unsafe"

	"github.com/braidgo/braid/internal/splitmix"
)

//go:linkname getm runtime.getm
func getm() unsafe.Pointer

//go:linkname draw runtime.rand
func draw() uint64

//go:linkname drawCheap runtime.cheaprand
func drawCheap() uint32

// A State records where the random states of a thread are. It is the same for all threads.
type State struct {
	chacha8, cheap uintptr // offsets in an m
	wide           bool    // cheaprand has 64 bits
	overlaid       bool
}

// chacha8 has the layout of internal/chacha8rand.State.
type chacha8 struct {
	buf     [32]uint64
	seed    [4]uint64
	i, n, c uint32
}

// words is the size of an m on 64-bit machines, in words of 32 bits. The allocator gives the m 2,048 bytes and uses 8 of them itself.
const words = 510

type copied [words]uint32

// Open finds the states, or returns an error if it cannot verify that draws depend on them. It changes the states of the calling
// thread.
func Open() (*State, error) { return open(draw, drawCheap) }

func open(draw func() uint64, cheap func() uint32) (s *State, err error) {
	runtime.LockOSThread() // no other goroutine draws from this m
	defer runtime.UnlockOSThread()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // an m may be smaller than the type copied
	defer func() {
		if r, ok := recover().(runtime.Error); ok {
			s, err = nil, r
		}
	}()
	for range 100 { // the runtime may draw in between
		s := new(State)
		if s.find(draw, cheap) && s.verify(draw) {
			return s, nil
		}
	}
	return nil, errors.New("chance: the random states of " + runtime.Version() + " were not found, or draws do not follow them")
}

func (s *State) find(draw func() uint64, cheap func() uint32) bool {
	var x uint64
	var c uint32
	i, n, _ := changed(func() { x = draw() })
	s.chacha8 = i - unsafe.Offsetof(chacha8{}.i)
	if n != 1 || s.chacha8 > i || !holds(s.chacha8, x) {
		return false
	}
	at, n, old := changed(func() { c = cheap() })
	s.cheap, s.wide = at, n == 2
	if n != 1 && n != 2 {
		return false
	}
	s.putCheap(old)
	return c == cheap()
}

// changed calls f and compares the m before and after the call. It returns the offset of the first changed word, the number of words up
// to the last changed word, and the old values of the first word and the next.
func changed(f func()) (at uintptr, n int, old uint64) {
	var before, after copied
	copyM(&before)
	f()
	copyM(&after)
	first, last := words, 0
	for i := range before {
		if before[i] != after[i] {
			first, last = min(first, i), i
		}
	}
	if first >= words-1 {
		return 0, 0, 0
	}
	return uintptr(first) * 4, last - first + 1, *(*uint64)(unsafe.Pointer(&before[first]))
}

//go:norace
//go:nocheckptr
func copyM(to *copied) { *to = *(*copied)(getm()) }

// holds reports whether the m has, at this offset, a chacha8 that has just returned x.
//
//go:norace
//go:nocheckptr
func holds(at uintptr, x uint64) bool {
	c := (*chacha8)(unsafe.Add(getm(), at))
	return 0 < c.i && c.i <= c.n && int(c.n) <= len(c.buf) && c.buf[c.i-1] == x
}

// key returns the key of the generator for a seed.
func key(seed uint64) (k [4]uint64) {
	for i := range k {
		k[i] = splitmix.Mix(seed + uint64(i+1)*splitmix.Golden)
	}
	return k
}

// Seed sets both states of the caller's thread.
//
//go:norace
//go:nocheckptr
func (s *State) Seed(seed uint64) {
	c, k := (*chacha8)(unsafe.Add(getm(), s.chacha8)), key(seed)
	// The buffer is now used up and at the end of its key, so the next draw uses the last words as the next key.
	*(*[4]uint64)(c.buf[28:]) = k // the race detector would see a call of copy
	c.i, c.n, c.c = 28, 28, 12
	s.SeedCheap(k[0])
}

// SeedCheap sets cheaprand of the caller's thread.
func (s *State) SeedCheap(seed uint64) { s.putCheap(splitmix.Mix(seed+splitmix.Golden) | 1) } // a state of 0 would stay 0

//go:norace
//go:nocheckptr
func (s *State) putCheap(x uint64) {
	p := (*[2]uint32)(unsafe.Add(getm(), s.cheap))
	w := *(*[2]uint32)(unsafe.Pointer(&x))
	p[0] = w[0]
	if s.wide {
		p[1] = w[1]
	}
}

// Overlaid reports whether the runtime was built with the overlay of simulation/overlay, with which select draws from chacha8.
func (s *State) Overlaid() bool { return s.overlaid }

// A view holds the results of random choices of the runtime.
type view struct{ selects, ranges, values uint64 }

func (s *State) verify(draw func() uint64) bool {
	var seed [32]byte
	for i, k := range key(1) {
		binary.LittleEndian.PutUint64(seed[8*i:], k)
	}
	s.Seed(1)
	want := rand.NewChaCha8(seed)
	for range 200 { // this many draws need more than one key
		if draw() != want.Uint64() {
			return false
		}
	}
	ready, table := make(chan int), map[int]int{}
	close(ready)
	for i := range 100 {
		table[i] = i
	}
	see := func(seed, cheap uint64) (v view) {
		s.Seed(seed)
		s.SeedCheap(cheap)
		for range 32 {
			v.selects *= 4
			select {
			case <-ready:
			case <-ready:
				v.selects++
			case <-ready:
				v.selects += 2
			case <-ready:
				v.selects += 3
			}
		}
		for range 16 {
			for k := range table {
				v.ranges = v.ranges*31 + uint64(k)
			}
		}
		v.values = rand.Uint64() + maphash.String(maphash.MakeSeed(), "")
		return v
	}
	first, again, other := see(1, 1), see(1, 1), see(2, 2)
	s.overlaid = see(1, 2).selects == first.selects
	return first == again && first.selects != other.selects && first.ranges != other.ranges && first.values != other.values
}

// orders holds the functions of a runtime with the overlay of simulation/overlay, which decides the order of goroutines. Another runtime
// does not have this variable, so the functions are nil.
//
//go:linkname orders runtime.orderWorld
var orders struct {
	set   func(run, draws uint64)
	begin func(id uint64)
	end   func()
}

// Orders reports whether the runtime has orders.
func Orders() bool { return orders.set != nil }

// Order seeds the order of the goroutines that descend from one that has called Begin. The strategy is a function of run. The draws are a
// function of draws, and of the ids of the goroutines. All these goroutines must run with GOMAXPROCS=1. Order needs Orders.
func Order(run, draws uint64) { orders.set(run, draws) }

// Begin gives the calling goroutine an id. Its children have ids that follow from it. Begin needs Orders.
func Begin(id uint64) { orders.begin(id) }

// EndOrder makes the runtime choose goroutines as it does without an overlay.
func EndOrder() { orders.end() }

// nodes has functions of a runtime with the overlay. Another runtime does not have this variable, so the functions are nil.
//
//go:linkname nodes runtime.nodeWorld
var nodes struct {
	set     func(id uint32)
	get     func() uint32
	crash   func(id uint32)
	blocked func() int64
}

// Nodes reports whether the runtime has nodes.
func Nodes() bool { return nodes.set != nil }

// SetNode sets the node of the calling goroutine. The goroutines that it starts belong to the same node, and so do the goroutines of the
// functions that its timers call. A timer belongs to the node whose goroutine has made or reset the timer last. The node 0 is none. SetNode
// needs Nodes.
func SetNode(id uint32) { nodes.set(id) }

// Node returns the node of the calling goroutine. Without Nodes, it is 0.
func Node() uint32 {
	if nodes.get == nil {
		return 0
	}
	return nodes.get()
}

// files holds the function that executes the system calls for files of goroutines that belong to a node, and each close. In a runtime without
// the overlay, nobody calls it.
//
//go:linkname files syscall.nodeFiles
var files struct{ call FileCall }

// A FileCall executes a system call. It returns done as false if the goroutine has to make the call itself. The arguments that are pointers
// are in path, other, data and p instead of a. It must not keep data and p, which may be on the caller's stack.
type FileCall func(trap uintptr, a *[6]uintptr, path, other string, data []byte, p any) (r uintptr, err syscall.Errno, done bool)

// SetFiles sets the function for files. While it makes calls of its own, the goroutine must be in the node id|Inside.
func SetFiles(f FileCall) { files.call = f }

// Inside is a bit of a node, see SetFiles.
const Inside = 1 << 31

// Crash stops the goroutines and timers of a node: none runs again. Their deferred functions do not run, and their waits count as durable in a bubble
// of testing/synctest. A channel or a mutex on which they wait wakes other goroutines instead. All goroutines of the node must be blocked,
// and GOMAXPROCS must be 1. Crash needs Nodes.
func Crash(id uint32) { nodes.crash(id) }

// Blocked returns the id of a goroutine that waits for a mutex that a goroutine of a crashed node has locked last, or 0 if no goroutine has
// begun such a wait since the last call. It finds no RWMutex that is locked for reading, and not every mutex if nodes have locked thousands.
func Blocked() int64 {
	if nodes.blocked == nil {
		return 0
	}
	return nodes.blocked()
}

// Nanotime returns the monotonic time of the machine, even in a bubble of testing/synctest, where package time has a fake clock.
func Nanotime() int64 { return nanotime() }

//go:linkname nanotime runtime.nanotime
func nanotime() int64
