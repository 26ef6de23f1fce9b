// Package watching finds the Watcher of the calling task's scheduler, for contexts from packages above package suspend.
package watching

import (
	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

// Here returns the Watcher of the calling task's scheduler. It returns nil outside a task, or if the scheduler is not a Watcher.
var Here cancelctx.Watching = func() cancelctx.Watcher {
	if w, ok := suspend.As[sched.Watcher](suspend.Here()); ok {
		return w
	}
	return nil
}
