package cancel

import (
	"context"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// WithTimeout is WithDeadline, d from now on by the clock of the calling task's scheduler.
func WithTimeout(parent context.Context, d time.Duration) (ctx context.Context, cancel func(cause error)) {
	return withDeadline(parent, suspend.Now().Add(d), d)
}

// WithDeadline is New, and the context ends with context.DeadlineExceeded at the time t, unless it has ended before. Timer
// and clock are those of the calling task's scheduler, see suspend.Timers, so in a simulation the time is the simulated one;
// elsewhere they are those of package time. A context that is to outlive a scheduler is to be made outside of it, since a
// scheduler may drop its timers when it closes. WithDeadline panics if parent is nil.
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
	l := &timed{Context: parent, at: t}
	c := &cancellable{Context: l, stop: l.release}
	l.c = c
	in := new(inner)
	in.Context, in.end = context.WithCancelCause(l)
	c.inner.Store(in)
	switch err := suspend.Err(parent); {
	case err != nil:
		l.over(parent.Err())
	case d <= 0:
		l.over(context.DeadlineExceeded)
	default:
		l.keep(suspend.AfterFunc(suspend.Here(), d, func() { l.over(context.DeadlineExceeded) }))
		if parent.Done() != nil {
			l.keep(onDone(parent, func() { l.over(parent.Err()) }))
		}
	}
	return c, c.cancel
}

// onDone calls f after parent has ended, by its own list if it has one.
func onDone(parent context.Context, f func()) (stop func() bool) {
	if a, ok := parent.(interface {
		AfterFunc(func()) (stop func() bool)
	}); ok {
		return a.AfterFunc(f)
	}
	return context.AfterFunc(parent, f)
}

// A timed is the parent of the inner context of one with a deadline, and has ended when the parent proper has or the time
// has come. To package context it is foreign, so that it is asked for Err, which that of a context of its own could not be
// made to be DeadlineExceeded by another timer.
type timed struct {
	context.Context // the parent
	at              time.Time
	c               *cancellable
	end             func() // ends the inner context; written before New returns

	mu    atomicx.Mutex
	err   error         // not nil: over
	stops []func() bool // the timer, and following the parent
}

// never is the Done channel of a timed, which is told by its AfterFunc.
var never = make(chan struct{})

func (l *timed) Deadline() (time.Time, bool) { return l.at, true }
func (l *timed) Done() <-chan struct{}       { return never }

func (l *timed) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// AfterFunc is called by package context, before context.WithCancelCause returns.
func (l *timed) AfterFunc(f func()) (stop func() bool) {
	l.end = f
	return func() bool { return false }
}

// over ends the context with err, if it is the first.
func (l *timed) over(err error) {
	if err == nil { // a parent that breaks its contract
		err = context.Canceled
	}
	l.mu.Lock()
	first := l.err == nil
	if first {
		l.err = err
	}
	l.mu.Unlock()
	if first {
		l.release()
		l.end()
		l.c.end()
	}
}

// keep leaves stop to be called by release, or calls it if that has been.
func (l *timed) keep(stop func() bool) {
	l.mu.Lock()
	over := l.err != nil
	if !over {
		l.stops = append(l.stops, stop)
	}
	l.mu.Unlock()
	if over {
		stop()
	}
}

// release stops the timer, and following the parent.
func (l *timed) release() bool {
	l.mu.Lock()
	stops := l.stops
	l.stops = nil
	l.mu.Unlock()
	for _, stop := range stops {
		stop()
	}
	return true
}
