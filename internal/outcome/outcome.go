// Package outcome tells the three ways apart in which a function ends: it returns, it panics, or its
// goroutine exits. Whoever runs a function for others hands the way on to them.
package outcome

import "runtime"

// An Outcome is how a function ended. The zero Outcome is a return.
type Outcome struct {
	kind  kind
	value any
}

type kind uint8

const (
	returned kind = iota
	panicked
	exited
)

// Of runs f and calls done with how it ended. If f calls runtime.Goexit, done runs while the goroutine
// unwinds, and Of does not return.
func Of(f func(), done func(Outcome)) {
	o := Outcome{kind: exited}
	defer func() {
		if o.kind == exited {
			// Neither returned nor exited: recover tells. It may return nil for a Goexit only, since
			// panic(nil) has a value of its own.
			if v := recover(); v != nil {
				o = Outcome{panicked, v}
			}
		}
		done(o)
	}()
	f()
	o.kind = returned
}

// Rethrow ends the caller as the function ended: it returns, panics with the same value, or exits the
// goroutine.
func (o Outcome) Rethrow() {
	switch o.kind {
	case panicked:
		panic(o.value)
	case exited:
		runtime.Goexit()
	}
}

// Returned reports whether the function returned.
func (o Outcome) Returned() bool { return o.kind == returned }

// Exited reports whether the function ended its goroutine.
func (o Outcome) Exited() bool { return o.kind == exited }

// Value is what the function panicked with, nil if it did not.
func (o Outcome) Value() any { return o.value }
