//go:build explore

package simulation

import "github.com/braidgo/braid/suspend"

// This file lets the model checker explore calls from goroutines outside a World, without a clock.

// An Exploring is a World that only accepts callbacks.
type Exploring struct{ w *World }

// NewExploring returns an Exploring that is not running yet.
func NewExploring() *Exploring {
	w := newWorld(Options{Seed: 1, open: true})
	w.admits = true
	return &Exploring{w}
}

// Run runs callbacks on the caller's goroutine, and sleeps while no callback is ready. It returns when no callback is left and a call of
// over() returns true. A call of alarm() must report whether the alarm has rung.
func (x *Exploring) Run(alarm, over func() bool) {
	w := x.w
	w.parent, w.fleet = suspend.Self(), new(fleet)
	for {
		if w.fallAsleep(); alarm() { // checked after the sleep has begun, because the real timer is also set then
			w.rouseSelf()
		}
		w.park()
		w.admit()
		for _, r := range w.ready {
			r.f()
		}
		w.ready = nil
		if over() && w.shut() {
			return
		}
	}
}

// Call submits the callback f from outside the World.
func (x *Exploring) Call(f func()) error {
	return x.w.fromOutside(ready{host: &x.w.host, f: f, as: callback})
}

// Alarm ends the sleep, as the World's alarm does.
func (x *Exploring) Alarm() { x.w.rouseSelf() }
