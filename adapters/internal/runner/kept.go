package runner

import (
	"bytes"
	"runtime"
	"sync"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
)

// Coroutines outlive the Run that made them: Runs on ordinary goroutines share a cache of idle coroutines. A cached
// coroutine begins a task in a fifth of the time that a new coroutine takes, and without an allocation.
//
// The runtime ends the process if a coroutine is made on a locked thread and resumed on an unlocked thread, or vice
// versa. Moreover, a coroutine stays in the synctest bubble in which it was made. So a Run must check its goroutine
// before it uses the cache; see the function ordinary. The check takes as long as making several coroutines, so a Run
// with few tasks does not use the cache.
//
// The cache stops coroutines that are no longer needed. At each tick, keptFor after the last, it stops half of the
// coroutines that no Run has needed since that last tick. The cache is empty about a quarter of a second after the last
// Run.
const (
	maxKept   = 8192 // the maximum number of coroutines in the cache
	fewTasks  = 32   // a Run with fewer busy coroutines does not use the cache
	keptBatch = 64   // the number of coroutines that a Run takes in one call
	keptFor   = 50 * time.Millisecond
	keptLeast = 1024 // the least number of unneeded coroutines to stop in one tick
)

// kept is the cache that all Runs share.
var kept keptTasks

type keptTasks struct {
	mu     atomicx.Mutex // a leaf in the lock order
	idle   []*Task
	least  int // the minimum of len(idle) since the last tick, which is the number of coroutines that no Run has needed
	ticker *time.Timer
}

// withdraw moves up to n coroutines from the cache to the end of a slice, and returns the slice.
func (k *keptTasks) withdraw(to []*Task, n int) []*Task {
	k.mu.Lock()
	defer k.mu.Unlock()
	left := max(len(k.idle)-n, 0)
	to = append(to, k.idle[left:]...)
	clear(k.idle[left:])
	k.idle = k.idle[:left]
	k.least = min(k.least, left)
	return to
}

// give moves as many coroutines as fit from the end of a slice to the cache, and returns their number. It calls
// leave(t) for each coroutine t before another Run can take it.
func (k *keptTasks) give(from []*Task, leave func(*Task)) (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n = min(len(from), maxKept-len(k.idle))
	for _, t := range from[len(from)-n:] {
		leave(t)
		k.idle = append(k.idle, t)
	}
	if k.ticker == nil {
		k.ticker = time.AfterFunc(keptFor, k.tick)
	}
	return n
}

// tick stops some of the coroutines that no Run has needed.
func (k *keptTasks) tick() {
	k.mu.Lock()
	n := min(max(k.least/2, keptLeast), k.least)
	surplus := append([]*Task(nil), k.idle[:n]...) // the oldest coroutines
	left := copy(k.idle, k.idle[n:])
	clear(k.idle[left:])
	k.idle = k.idle[:left]
	if k.least = left; left > 0 {
		k.ticker.Reset(keptFor)
	} else {
		k.idle, k.ticker = nil, nil
	}
	k.mu.Unlock()
	for _, t := range surplus {
		t.Stop()
	}
}

// ordinary reports whether the calling goroutine is in no bubble and its thread is not locked. Only the first line of
// its stack trace shows this.
func ordinary() bool {
	said.Do(func() {
		sure := make(chan bool)
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			locked, _ := readHead()
			sure <- locked
		}()
		saysLocked = <-sure
	})
	locked, bubble := readHead()
	return saysLocked && !locked && !bubble
}

var (
	said       sync.Once
	saysLocked bool // true if stack traces show that a thread is locked
)

func readHead() (locked, bubble bool) {
	var buf [256]byte
	head, _, whole := bytes.Cut(buf[:runtime.Stack(buf[:], false)], []byte{'\n'})
	return !whole || bytes.Contains(head, []byte("locked to thread")), bytes.Contains(head, []byte("bubble"))
}
