//go:build explore

package actor

import "github.com/braidgo/braid/suspend"

// goroutine runs f on a goroutine. Under the model checker, it is a task of the run.
func goroutine(f func()) {
	if suspend.Here().Go(f) != nil {
		go f()
	}
}
