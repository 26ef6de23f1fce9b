package workstealing

import (
	"runtime"
	"time"
)

// A breath is what a worker takes now and then, between two of its steps, for the sake of the other goroutines: as many
// workers as there are processors would leave none to an event loop that wakes up, until the runtime preempts one of
// them, after 10 ms. If somebody else then computes for long, the worker is as slow to give way again: it has its share.
//
// The clock costs as much as a small step. So it is read every so many steps, as many as fit into a part of the time.
type breath struct {
	steps int           // until the clock is read
	every int           // steps between two readings
	read  time.Duration // the last reading
	next  time.Duration // time to give way
}

const (
	breathEvery    = 500 * time.Microsecond
	breathEveryMax = 10 * time.Millisecond // the runtime's own time slice
)

var epoch = time.Now()

func (b *breath) take() {
	if b.steps--; b.steps > 0 {
		return
	}
	now := time.Since(epoch)
	switch took := now - b.read; {
	case took < breathEvery/8:
		b.every = min(2*b.every+1, 1<<12)
	case took > breathEvery/2:
		b.every /= 2
	}
	if now >= b.next {
		runtime.Gosched()
		before := now
		now = time.Since(epoch)
		b.next = now + min(max(now-before, breathEvery), breathEveryMax)
	}
	b.steps, b.read = b.every, now
}
