// Package threadlock tells whether a goroutine is locked to its thread.
//
// A goroutine is locked between runtime.LockOSThread and runtime.UnlockOSThread, and while it runs a Go function that C code has called.
// The runtime ends the process if such a goroutine switches to a coroutine that was created without the lock, and has no function that
// reports the lock. Each lock is in a word of the runtime's g structure, which is 0 without a lock, and otherwise the address of the
// thread's m structure. The first call of Find locks and unlocks two new goroutines, and looks for the only word of both that
// changes in this way. If there is none, as in a future version of Go, Locked always returns false.
package threadlock

import (
	"runtime"
	"sync"
	"unsafe"

	"github.com/braidgo/braid/internal/prefetch"
)

// offset is the offset of the word in the g, or 0 if the word is unknown.
var offset uintptr

var find sync.Once

// Find finds the word, once for the process. A goroutine that calls Locked must have called Find.
func Find() { find.Do(func() { offset = search(runtime.LockOSThread, runtime.UnlockOSThread) }) }

// Locked reports whether the calling goroutine, whose g is at this address, is locked to its thread. If g is nil, Locked returns false.
func Locked(g unsafe.Pointer) bool {
	return offset != 0 && g != nil && *(*uintptr)(unsafe.Add(g, offset)) != 0
}

// words is the number of words of a g that are searched. A g is larger in all supported versions of Go.
const words = 48

// search returns the offset of the word that lock sets and unlock clears on each of two goroutines, or 0 if it is not the only one.
func search(lock, unlock func()) (found uintptr) {
	var both [2][words]bool
	var done sync.WaitGroup
	for i := range both {
		done.Go(func() { both[i] = changes(lock, unlock) })
	}
	done.Wait()
	for i := range words {
		switch {
		case !both[0][i] || !both[1][i]:
		case found != 0:
			return 0
		default:
			found = uintptr(i) * unsafe.Sizeof(found)
		}
	}
	return found
}

// changes reports for each word of the caller's g whether it is 0 without the lock, and with the lock the address of the m. That address
// is also in another word of the g, which does not change.
func changes(lock, unlock func()) (changed [words]bool) {
	var task prefetch.Task
	task.Begin()
	g := task.G()
	if g == nil { // prefetch has no code for this processor
		return changed
	}
	all := (*[words]uintptr)(g)
	lock()
	locked := *all
	unlock()
	free := *all
	lock()
	again := *all
	unlock()
	for i, m := range locked {
		if free[i] != 0 || m == 0 || again[i] == 0 {
			continue
		}
		for k, x := range locked {
			if changed[i] = k != i && x == m; changed[i] {
				break
			}
		}
	}
	return changed
}
