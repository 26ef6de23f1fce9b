//go:build explore

package simulation

import "github.com/braidgo/braid/suspend"

// What follows is for the model checker: the door between a World and the goroutines outside, without a clock.

// An Exploring is a World that only lets in callbacks.
type Exploring struct{ w *World }

// NewExploring returns an Exploring that has not run.
func NewExploring() *Exploring {
	w := newWorld(Options{Seed: 1, open: true})
	w.admits = true
	return &Exploring{w}
}

// Run runs callbacks on the caller, and sleeps while there are none, until over reports true and no callback is left. alarm reports whether
// the alarm has rung.
func (x *Exploring) Run(alarm, over func() bool) {
	w := x.w
	w.parent, w.fleet = suspend.Self(), new(fleet)
	for {
		if w.fallAsleep(); alarm() { // after the sleep has begun, as the timer is set after it
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

// Call is a call from outside.
func (x *Exploring) Call(f func()) error {
	return x.w.fromOutside(ready{host: &x.w.host, f: f, as: callback})
}

// Alarm ends the sleep, as the alarm does.
func (x *Exploring) Alarm() { x.w.rouseSelf() }
