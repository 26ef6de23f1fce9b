//go:build explore

package actor

import "github.com/braidgo/braid/suspend"

// goroutine calls f in a new task of the model checker's run, or on a new goroutine outside a run.
func goroutine(f func()) {
	if suspend.Here().Go(f) != nil {
		go f()
	}
}
