// Package abandoned makes the errors of functions that did not return.
package abandoned

import (
	"fmt"
	"runtime/debug"

	"github.com/braidgo/braid/suspend"
)

// Error returns the error of a function that did not return: sentinel after a runtime.Goexit, and sentinel with a
// *suspend.PanicError after a panic. A deferred function calls Error with the result of recover.
func Error(sentinel error, recovered any) error {
	if recovered == nil {
		return sentinel
	}
	return fmt.Errorf("%w: %w", sentinel, &suspend.PanicError{Value: recovered, Stack: debug.Stack()})
}

// Watch calls f. If f does not return, Watch passes the error to failed, and the panic or the exit continues, with the
// stack of f.
func Watch(sentinel error, f func(), failed func(err error)) {
	returned := false
	defer func() {
		if returned {
			return
		}
		v := recover()
		failed(Error(sentinel, v))
		if v != nil {
			panic(v)
		}
	}()
	f()
	returned = true
}
