// Package watching finds the Watcher of the calling task's scheduler, for contexts that are made above package suspend.
package watching

import (
	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/suspend"
)

// Here finds the Watcher. It returns nil on a goroutine without a task, and where the scheduler has none.
var Here cancelctx.Watching = func() cancelctx.Watcher {
	if w, ok := suspend.As[suspend.Watcher](suspend.Here()); ok {
		return w
	}
	return nil
}
