// Package outcome distinguishes the three ways in which a function ends: it returns, it panics, or its goroutine exits. So the caller for
// which it ran can end in the same way.
package outcome

import "runtime"

// An Outcome is the way in which a function ended. The zero Outcome is a return.
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

// Of runs f and calls done with its Outcome. If f calls runtime.Goexit, done runs while the goroutine
// unwinds, and Of does not return.
func Of(f func(), done func(Outcome)) {
	var o Outcome
	ended := false
	defer func() {
		if !ended {
			o = Recovered(recover())
		}
		done(o)
	}()
	f()
	ended = true
}

// Recovered returns the Outcome of a function that did not return, from the result of recover. That is nil for a Goexit only,
// since panic(nil) has a value.
func Recovered(v any) Outcome {
	if v == nil {
		return Outcome{kind: exited}
	}
	return Outcome{panicked, v}
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

// Value is the value of the panic, nil if there was none.
func (o Outcome) Value() any { return o.value }

// Each calls step until it reports false. If step panics or exits its goroutine, the calls go on, and then the panic does. After a
// panic in the last step it is called once more, and finds nothing to do.
func Each(step func() (more bool)) {
	more := true
	defer func() {
		if more {
			Each(step)
		}
	}()
	for more {
		more = step()
	}
}
