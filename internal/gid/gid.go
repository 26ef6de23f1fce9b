// Package gid identifies goroutines.
//
// The Task of a suspension is found by the calling goroutine, so a wrong identity would park a
// stranger. The fast way to the identity reads a field of the runtime's own structure at an offset
// that a third party maintains. The first call of Get therefore compares it, on two fresh goroutines, with the number
// that runtime.Stack prints, and gives the fast way up for the life of the process if they differ.
package gid

import (
	"bytes"
	"iter"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
)

// The ways to the identity. way is unchecked until the first Get has compared the two others.
const (
	unchecked uint32 = iota
	read
	printed
)

var (
	way   atomic.Uint32
	check sync.Once
)

// Get returns the identity of the calling goroutine: positive, and never used again by another.
func Get() int64 {
	if way.Load() != read {
		return slowly()
	}
	return fast()
}

// Quick is Get where the fast way is used, and 0 elsewhere. The compiler inlines it, and Get it does not.
func Quick() int64 {
	if way.Load() != read {
		return 0
	}
	return fast()
}

func slowly() int64 {
	check.Do(func() { decide(fast, slog.Warn) })
	if way.Load() == read {
		return fast()
	}
	return Printed()
}

// decide chooses the way, and says so where it is the slow one.
func decide(fast func() int64, warn func(text string, about ...any)) {
	if agree(fast, Printed) {
		way.Store(read)
		return
	}
	way.Store(printed)
	warn("braid: github.com/petermattis/goid misreads goroutine ids; runtime.Stack replaces it, and each suspension takes microseconds "+
		"until that module is updated", "go", runtime.Version())
}

func agree(fast, printed func() int64) bool {
	type ids struct{ fast, printed int64 }
	var answers [2]ids
	var ready, done sync.WaitGroup
	for i := range answers { // two that live at the same time, because a wrong offset may well read a plausible constant
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			ready.Wait() // both alive
			answers[i] = ids{fast(), printed()}
		})
	}
	done.Wait()
	a, b := answers[0], answers[1]
	return a.fast == a.printed && b.fast == b.printed && a.fast != b.fast
}

var prefix = []byte("goroutine ")

// lines holds the buffers of Printed, which runtime.Stack would move to the heap.
var lines = sync.Pool{New: func() any { return new([64]byte) }}

// Printed returns the same identity as Get, read from the first line of the goroutine's stack trace.
// It takes microseconds.
func Printed() int64 {
	buf := lines.Get().(*[64]byte)
	defer lines.Put(buf)
	id, ok := number(buf[:runtime.Stack(buf[:], false)])
	if !ok {
		panic("gid: runtime.Stack prints no goroutine number")
	}
	return id
}

// number reads the identity from the first line of a stack trace.
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

const stackSize = 2 << 10 // bytes of a small stack's text

// Stacks returns the identity of each goroutine and its stack trace. It stops the world for as long as it takes to print
// every goroutine.
func Stacks() iter.Seq2[int64, []byte] {
	all := make([]byte, max(1<<16, stackSize*runtime.NumGoroutine())) // most often enough: each try prints all
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
