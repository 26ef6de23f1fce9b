// Package abandoned makes the errors of functions that did not return, or never began.
package abandoned

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

// Go starts f as a task of on. If on drops f, as a node of a simulation does when it crashes before f begins, dropped is called as a
// callback instead.
func Go(on suspend.Spawner, f, dropped func()) error {
	if w, ok := on.(sched.Withdrawer); ok {
		return w.GoUntil(context.Background(), f, dropped)
	}
	return on.Go(f)
}

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
