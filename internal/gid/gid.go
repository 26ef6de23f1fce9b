// Package gid tells goroutines apart.
//
// A handler of suspensions is found by the calling goroutine, so a wrong identity would park a
// stranger. The fast way to the identity reads a field of the runtime's own structure at an offset
// that a third party maintains; it is therefore compared, once, on two fresh goroutines, with what
// runtime.Stack prints, and given up for good if they differ.
package gid

import (
	"bytes"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/petermattis/goid"
)

var (
	checked sync.Once
	slow    atomic.Bool // written once, before Check returns; true only goes with a broken fast path
)

// Get returns the identity of the calling goroutine: positive, and never used again by another.
// Check must have returned somewhere before the first result is relied upon.
func Get() int64 {
	if slow.Load() {
		return Printed()
	}
	return goid.Get()
}

// Check compares the fast way with the slow one, on its first call only. Two goroutines that live at
// the same time are asked, because a wrong offset may well read a plausible constant.
func Check() {
	checked.Do(func() { slow.Store(!agree(goid.Get, Printed)) })
}

func agree(fast, printed func() int64) bool {
	type ids struct{ fast, printed int64 }
	var answers [2]ids
	var ready, done sync.WaitGroup
	for i := range answers {
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

// Printed returns the same identity as Get, read from the first line of the goroutine's stack trace.
// It takes microseconds.
func Printed() int64 {
	var buf [64]byte
	line := bytes.TrimPrefix(buf[:runtime.Stack(buf[:], false)], prefix)
	end := bytes.IndexByte(line, ' ')
	if end < 0 {
		panic("gid: runtime.Stack prints no goroutine number")
	}
	id, err := strconv.ParseInt(string(line[:end]), 10, 64)
	if err != nil {
		panic("gid: runtime.Stack prints no goroutine number")
	}
	return id
}

// Stack returns the stack trace of the goroutine whose identity is id, nil if there is none. It stops
// the world for as long as it takes to print every goroutine.
func Stack(id int64) []byte {
	all := make([]byte, 1<<16)
	for {
		n := runtime.Stack(all, true)
		if n < len(all) {
			all = all[:n]
			break
		}
		all = make([]byte, 2*len(all))
	}
	header := append(strconv.AppendInt(append([]byte(nil), prefix...), id, 10), ' ')
	for trace := range bytes.SplitSeq(all, []byte("\n\n")) {
		if bytes.HasPrefix(trace, header) {
			return trace
		}
	}
	return nil
}
