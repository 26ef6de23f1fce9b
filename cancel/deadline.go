package cancel

import (
	"context"
	"time"

	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/internal/watching"
	"github.com/braidgo/braid/suspend"
)

// WithTimeout is like WithDeadline, with a deadline d after the current time of the calling task's scheduler.
func WithTimeout(parent context.Context, d time.Duration) (ctx context.Context, stop context.CancelFunc) {
	return WithTimeoutCause(parent, d, nil)
}

// WithTimeoutCause is like WithDeadlineCause, with a deadline d after the current time of the calling task's scheduler.
func WithTimeoutCause(parent context.Context, d time.Duration, cause error) (ctx context.Context, stop context.CancelFunc) {
	return withDeadline(parent, suspend.Now().Add(d), d, cause)
}

// WithDeadline is like New, but the context also ends with context.DeadlineExceeded at the time t, and stop takes no cause. If the calling
// task's scheduler has timers and a clock (see sched.Timers), the context uses them, so that a simulation uses simulated time. Otherwise
// package time provides them. A scheduler may drop its timers when it closes, so its tasks must not make contexts that outlive the scheduler.
// If parent is a context of package context, its end is passed on by a goroutine. WithDeadline panics if parent is nil.
func WithDeadline(parent context.Context, t time.Time) (ctx context.Context, stop context.CancelFunc) {
	return WithDeadlineCause(parent, t, nil)
}

// WithDeadlineCause is like WithDeadline, and the cause of the context is cause if the deadline ends it. A nil cause means
// context.DeadlineExceeded.
func WithDeadlineCause(parent context.Context, t time.Time, cause error) (ctx context.Context, stop context.CancelFunc) {
	return withDeadline(parent, t, t.Sub(suspend.Now()), cause)
}

func withDeadline(parent context.Context, t time.Time, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	if parent == nil {
		panic("cancel: nil parent")
	}
	if at, ok := parent.Deadline(); ok && !at.After(t) {
		c := cancelctx.New(parent, watching.Here)
		return c, (*canceller)(c).stopPlainly
	}
	var after func(f func()) (stop func() bool)
	if on := suspend.Here(); d > 0 {
		after = func(f func()) func() bool { return suspend.AfterFunc(on, d, f) }
	}
	c := cancelctx.WithDeadline(parent, t, cause, watching.Here, after)
	return c, (*canceller)(c).stopPlainly
}
