//go:build explore

package coro

import (
	"time"

	"github.com/braidgo/braid/internal/atomicx"
)

// A Watch is a Stalls without a clock: the program calls Look when Set.
type Watch struct {
	Stalls
	set atomicx.Bool
}

// NewWatch returns a Watch of a worker in a step, with its timer set.
func NewWatch() *Watch {
	w := new(Watch)
	w.after, w.again = time.Hour, func() { w.set.Store(true) }
	w.Step()
	return w
}

// Step begins a step.
func (w *Watch) Step() { w.Begin() }

// End ends a step.
func (w *Watch) End() { w.Stalls.End() }

// Set reports whether the timer will call Look.
func (w *Watch) Set() bool { return w.set.Load() }

// Look is the call of the timer, if it is set.
func (w *Watch) Look() {
	if w.set.CompareAndSwap(true, false) {
		w.look()
	}
}
