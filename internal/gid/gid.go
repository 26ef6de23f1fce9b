// Package gid identifies goroutines.
//
// Package suspend finds the calling task by its goroutine id, so a wrong id would suspend the wrong task. The fast way reads the id
// from the runtime's g structure, at an offset that the module github.com/petermattis/goid maintains. The first call of Get compares
// this id, on two new goroutines, with the number that runtime.Stack prints. If they differ, the process uses runtime.Stack from then
// on.
package gid

import (
	"bytes"
	"iter"
	"runtime"
	"sync"
	"sync/atomic"
)

// These are the values of the variable way. Its value is unchecked until the first Get has compared the two ways to read an id.
const (
	unchecked uint32 = iota
	read
	printed
)

var (
	way   atomic.Uint32
	check sync.Once
)

// Get returns the id of the calling goroutine. An id is positive, and no other goroutine ever has the same id.
func Get() int64 {
	if way.Load() != read {
		return slowly()
	}
	return fast()
}

// Quick is like Get, but returns 0 if the fast way is not used. The compiler can inline Quick, but not Get.
func Quick() int64 {
	if way.Load() != read {
		return 0
	}
	return fast()
}

func slowly() int64 {
	check.Do(func() { decide(fast, func(text string) { print(text) }) }) // to standard error: a logger takes half a megabyte
	if way.Load() == read {
		return fast()
	}
	return Printed()
}

// decide sets the variable way, and warns if ids must be read with runtime.Stack.
func decide(fast func() int64, warn func(text string)) {
	if agree(fast, Printed) {
		way.Store(read)
		return
	}
	way.Store(printed)
	warn("braid: github.com/petermattis/goid misreads the goroutine ids of " + runtime.Version() + "; runtime.Stack replaces it, and each suspension " +
		"takes microseconds until that module is updated\n")
}

func agree(fast, printed func() int64) bool {
	type ids struct{ fast, printed int64 }
	var answers [2]ids
	var ready, done sync.WaitGroup
	for i := range answers { // two goroutines live at the same time, because a wrong offset may read a plausible constant
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			ready.Wait() // both goroutines are alive here
			answers[i] = ids{fast(), printed()}
		})
	}
	done.Wait()
	a, b := answers[0], answers[1]
	return a.fast == a.printed && b.fast == b.printed && a.fast != b.fast
}

var prefix = []byte("goroutine ")

// lines holds the buffers of Printed, because a buffer for runtime.Stack escapes to the heap.
var lines = sync.Pool{New: func() any { return new([64]byte) }}

// Printed returns the same id as Get, which it reads from the goroutine's stack trace. It takes microseconds.
func Printed() int64 {
	buf := lines.Get().(*[64]byte)
	defer lines.Put(buf)
	id, ok := number(buf[:runtime.Stack(buf[:], false)])
	if !ok {
		panic("gid: runtime.Stack prints no goroutine number")
	}
	return id
}

// number parses the id in the first line of a stack trace.
func number(trace []byte) (id int64, ok bool) {
	line, ok := bytes.CutPrefix(trace, prefix)
	for i, c := range line {
		if c < '0' || c > '9' {
			return id, ok && i > 0 && c == ' '
		}
		id = 10*id + int64(c-'0')
	}
	return 0, false
}

const stackSize = 2 << 10 // the length of a short stack trace in bytes

// Stacks returns the id and the stack trace of each goroutine. It stops the world while runtime.Stack prints all goroutines.
func Stacks() iter.Seq2[int64, []byte] {
	all := make([]byte, max(1<<16, stackSize*runtime.NumGoroutine())) // usually large enough, because each attempt prints all goroutines
	for {
		n := runtime.Stack(all, true)
		if n < len(all) {
			all = all[:n]
			break
		}
		all = make([]byte, 2*len(all))
	}
	return func(yield func(int64, []byte) bool) {
		for trace := range bytes.SplitSeq(all, []byte("\n\n")) {
			if id, ok := number(trace); ok && !yield(id, trace) {
				return
			}
		}
	}
}
