package coro

import (
	"iter"
	"runtime"
	"sync"
	"time"

	"github.com/braidgo/braid/internal/gid"
)

// Printing the stacks of all goroutines stops the process for about perStack for each goroutine. So the stacks are
// printed only for a wait that has lasted waitShare times as long, and printing takes at most one part in timeShare of
// all time. Otherwise, with 100,000 tasks, the reports of a stuck task would stop the other tasks for longer than the
// stuck task does.
const (
	perStack  = 15 * time.Microsecond
	waitShare = 4
	timeShare = 20
)

var printing struct {
	sync.Mutex
	ended time.Time // the time at which the last printing ended
	took  time.Duration
}

// Early reports whether it is too early to print the stacks for a step that has lasted for the duration held.
func Early(held time.Duration) bool {
	if !printing.TryLock() {
		return true
	}
	defer printing.Unlock()
	return earlyLocked(held)
}

func earlyLocked(held time.Duration) bool {
	since := time.Since(printing.ended) // may be negative in a synctest bubble, because each bubble's clock starts in 2000
	return held < atMost(runtime.NumGoroutine()) || since >= 0 && since < timeShare*printing.took
}

// stacks returns the result of gid.Stacks for a step that has lasted for the duration held, or nil if it is too early
// to print the stacks.
func stacks(held time.Duration) iter.Seq2[int64, []byte] {
	if !printing.TryLock() {
		return nil
	}
	defer printing.Unlock()
	if earlyLocked(held) {
		return nil
	}
	begun := time.Now()
	all := gid.Stacks()
	printing.ended = time.Now()
	printing.took = charge(printing.ended.Sub(begun), runtime.NumGoroutine())
	return all
}

// charge returns the part of the time took that counts as printing. On a busy machine other processes run meanwhile. If their time
// counted, a stall of a fifth of a second would go unreported.
func charge(took time.Duration, goroutines int) time.Duration { return min(took, atMost(goroutines)) }

// atMost returns the time for which printing the stacks of the given number of goroutines may stop the process.
func atMost(goroutines int) time.Duration { return waitShare * perStack * time.Duration(goroutines) }
