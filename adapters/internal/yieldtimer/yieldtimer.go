// Package yieldtimer makes a busy scheduler yield to other goroutines from time to time.
package yieldtimer

import (
	"runtime"
	"time"
)

// A Timer makes its goroutine yield to other goroutines every half millisecond, between two steps. Otherwise, if
// schedulers keep all processors busy, an event loop that wakes up would wait until the runtime preempts a scheduler,
// which takes 10 ms. If a yield takes longer than half a millisecond because other goroutines run, the next yield
// follows after an equally long time, but after at most 10 ms. The zero Timer is ready to use.
//
// A reading of the clock takes as long as a small step, so the Timer does not read the clock before each step. It
// adapts the number of steps between two readings, so that they are an eighth to a half of the period apart.
type Timer struct {
	steps int           // steps until the clock is read
	every int           // steps between two readings
	read  time.Duration // time of the last reading
	next  time.Duration // time of the next yield
}

const (
	period    = 500 * time.Microsecond
	periodMax = 10 * time.Millisecond // the runtime's own time slice
)

var epoch = time.Now()

// Tick must be called before each step.
func (t *Timer) Tick() {
	if t.steps--; t.steps <= 0 {
		t.readClock()
	}
}

// Ticks replaces n calls of Tick. The next call must come after at most as many steps as Ticks returns.
func (t *Timer) Ticks(n int) int {
	if t.steps -= n; t.steps <= 0 {
		t.readClock()
	}
	return max(1, t.steps)
}

func (t *Timer) readClock() {
	now := time.Since(epoch)
	switch took := now - t.read; {
	case took < period/8:
		t.every = min(2*t.every+1, 1<<12)
	case took > period/2: // the steps have become longer
		t.every = int(int64(t.every) * int64(period/4) / int64(took))
	}
	if now >= t.next {
		runtime.Gosched()
		before := now
		now = time.Since(epoch)
		t.next = now + min(max(now-before, period), periodMax)
	}
	t.steps, t.read = t.every, now
}
