package suspend

import (
	"context"

	"github.com/braidgo/braid/internal/cancelctx"
)

// Watcher tells of the end of contexts. AfterDone calls f, as Execute would, after ctx is done. stop reports whether it has
// prevented the call. A context of package context calls back on a goroutine of its own. A scheduler that repeats a run
// from its seed can admit none, so it looks at the Done channels itself. Tasks ask for it when they wait with a context that
// has no AfterFunc method. Without it, the call is that of context.AfterFunc.
type Watcher interface {
	AfterDone(ctx context.Context, f func()) (stop func() bool)
}

// watching finds the Watcher of the calling task's scheduler.
var watching cancelctx.Watching = func() cancelctx.Watcher {
	if b := current(); b == nil || b.task == nil {
		return nil
	}
	if w, ok := As[Watcher](Here()); ok {
		return w
	}
	return nil
}
