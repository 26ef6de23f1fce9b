package runner

import (
	"bytes"
	"runtime"
	"sync"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
)

// Coroutines outlive the Run that made them: Runs on ordinary goroutines share a cache of idle coroutines. A kept
// coroutine begins a task in a fifth of the time that a fresh one takes, and without an allocation.
//
// The runtime ends the process if a coroutine is resumed on a thread that is locked and was not when the coroutine was
// made, or the other way round, and a coroutine stays in the synctest bubble of its maker. So a Run of many tasks must
// first check where it runs, see ordinary. That takes as long as several coroutines, so a Run of few tasks does
// without.
//
// The cache gives coroutines back while nothing takes them: every keptFor, half of the coroutines that no Run has
// needed since the last time. It is empty a third of a second after the last Run.
const (
	maxKept   = 8192 // coroutines in the cache
	fewTasks  = 32   // coroutines that a Run makes before it looks at the cache
	keptBatch = 64   // coroutines to take in one call
	keptFor   = 50 * time.Millisecond
	keptLeast = 256 // coroutines to give back in one tick, if there are so many
)

// kept is the cache.
var kept keptTasks

type keptTasks struct {
	mu     atomicx.Mutex // a leaf
	idle   []*Task
	least  int // len(idle) at its least since the last tick: no Run has needed these
	ticker *time.Timer
}

// take moves up to n coroutines to the end of to.
func (k *keptTasks) take(to []*Task, n int) []*Task {
	k.mu.Lock()
	defer k.mu.Unlock()
	left := max(len(k.idle)-n, 0)
	to = append(to, k.idle[left:]...)
	clear(k.idle[left:])
	k.idle = k.idle[:left]
	k.least = min(k.least, left)
	return to
}

// give adds the last n of from, as many as there is room for. It calls leave for each, before another Run can take it.
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

// tick gives back some of the coroutines that no Run has needed.
func (k *keptTasks) tick() {
	k.mu.Lock()
	n := min(max(k.least/2, keptLeast), k.least)
	surplus := append([]*Task(nil), k.idle[:n]...) // the oldest
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

// ordinary reports whether the calling goroutine is in no bubble and its thread is not locked. Only the head of its
// stack trace says so.
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
	saysLocked bool // the runtime says so where a thread is locked
)

func readHead() (locked, bubble bool) {
	var buf [256]byte
	head, _, whole := bytes.Cut(buf[:runtime.Stack(buf[:], false)], []byte{'\n'})
	return !whole || bytes.Contains(head, []byte("locked to thread")), bytes.Contains(head, []byte("bubble"))
}
