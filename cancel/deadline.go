package cancel

import (
	"context"
	"time"

	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/internal/watching"
	"github.com/braidgo/braid/suspend"
)

// WithTimeout is WithDeadline, d from now on by the clock of the calling task's scheduler.
func WithTimeout(parent context.Context, d time.Duration) (ctx context.Context, cancel func(cause error)) {
	return withDeadline(parent, suspend.Now().Add(d), d)
}

// WithDeadline is New, and the context also ends with context.DeadlineExceeded at the time t. Timer and clock belong to
// the calling task's scheduler, see suspend.Timers: in a simulation the time is the simulated time. Elsewhere package
// time provides them. A scheduler may drop its timers when it closes, so make a context that outlives a scheduler
// outside of it. The end of a parent of package context is passed on by a goroutine. WithDeadline panics if parent is
// nil.
func WithDeadline(parent context.Context, t time.Time) (ctx context.Context, cancel func(cause error)) {
	return withDeadline(parent, t, t.Sub(suspend.Now()))
}

func withDeadline(parent context.Context, t time.Time, d time.Duration) (context.Context, func(cause error)) {
	if parent == nil {
		panic("cancel: nil parent")
	}
	if at, ok := parent.Deadline(); ok && !at.After(t) {
		return New(parent)
	}
	var after func(f func()) (stop func() bool)
	if on := suspend.Here(); d > 0 {
		after = func(f func()) func() bool { return suspend.AfterFunc(on, d, f) }
	}
	c := cancelctx.WithDeadline(parent, t, watching.Here, after)
	return c, (*canceller)(c).cancel
}
