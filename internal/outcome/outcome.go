// Package outcome records how a function ended: it returned, it panicked, or its goroutine exited. A caller that ran
// the function on another goroutine can then end in the same way.
package outcome

import "runtime"

// An Outcome records how a function ended. The zero Outcome means that the function returned.
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

// Of runs f and calls done with the Outcome of f. If f panics, Of recovers the panic and returns. If f calls
// runtime.Goexit, done runs while the goroutine exits, and Of does not return.
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

// Recovered returns the Outcome of a function that did not return. The argument is the result of recover, which is nil
// only after a Goexit, because recover does not return nil after panic(nil).
func Recovered(v any) Outcome {
	if v == nil {
		return Outcome{kind: exited}
	}
	return Outcome{panicked, v}
}

// Rethrow ends the caller in the way in which the function ended: it returns, panics with the same value, or exits the
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

// Exited reports whether the function exited its goroutine.
func (o Outcome) Exited() bool { return o.kind == exited }

// Value returns the value of the panic, or nil if the function did not panic.
func (o Outcome) Value() any { return o.value }

// Each calls step until step returns false. If step panics or exits its goroutine, Each makes the remaining calls
// before the panic or the exit continues. After a panic in the last step, Each calls step once more, so step must allow
// a call when nothing is left to do.
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
