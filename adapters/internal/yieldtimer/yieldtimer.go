// Package yieldtimer says when a scheduler that is always busy lets other goroutines run.
package yieldtimer

import (
	"runtime"
	"time"
)

// A Timer belongs to one goroutine, which yields to other goroutines every half millisecond, between two of its steps.
// Schedulers that keep all processors busy would otherwise leave none to an event loop that wakes up, until the runtime
// preempts a scheduler, after 10 ms. If another goroutine then computes for long, this one is as slow to yield again:
// it has its share. The zero Timer is ready.
//
// A reading of the clock takes as long as a small step, so the Timer skips steps between two readings: about an eighth
// of the period.
type Timer struct {
	steps int           // steps until the clock is read
	every int           // steps between two readings
	read  time.Duration // the last reading
	next  time.Duration // time to yield
}

const (
	period    = 500 * time.Microsecond
	periodMax = 10 * time.Millisecond // the runtime's own time slice
)

var epoch = time.Now()

// Tick is called before each step.
func (t *Timer) Tick() {
	if t.steps--; t.steps <= 0 {
		t.look()
	}
}

// Ticks is called in place of n Ticks, by a caller that has time for that. It returns the number of steps until the next call at the latest.
func (t *Timer) Ticks(n int) int {
	if t.steps -= n; t.steps <= 0 {
		t.look()
	}
	return max(1, t.steps)
}

func (t *Timer) look() {
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
