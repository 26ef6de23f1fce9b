//go:build explore

package coro

import (
	"time"

	"github.com/braidgo/braid/internal/atomicx"
)

// A Watch is a Stalls without a clock. The program calls Look if Set returns true.
type Watch struct {
	Stalls
	set atomicx.Bool
}

// NewWatch returns a Watch of a worker that is in a step. The timer is set.
func NewWatch() *Watch {
	w := new(Watch)
	w.after, w.again = time.Hour, func() { w.set.Store(true) }
	w.Step()
	return w
}

// Step begins a step.
func (w *Watch) Step() { w.Begin() }

// End ends the step.
func (w *Watch) End() { w.Stalls.End() }

// Set reports whether the timer is set.
func (w *Watch) Set() bool { return w.set.Load() }

// If the timer is set, Look does what the timer would do.
func (w *Watch) Look() {
	if w.set.CompareAndSwap(true, false) {
		w.inspect()
	}
}
