//go:build explore

package fetch

import "github.com/braidgo/braid/suspend"

// Batches is where the model checker runs batches: on a scheduler of its own.
var Batches = suspend.Goroutines

func goroutine(f func()) { _ = Batches.Go(f) }
