package cancelctx

import (
	"context"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
)

// WithDeadline returns a Context that ends when parent ends, when Cancel is called, or with context.DeadlineExceeded when the deadline
// passes. The cause is that of the deadline; nil means context.DeadlineExceeded. The last argument is a function that starts a timer, which
// calls f at the deadline. It is nil if the deadline has already passed.
func WithDeadline(parent context.Context, at time.Time, cause error, on Watching, after func(f func()) (stop func() bool)) *Context {
	l := &timed{Context: parent, at: at}
	if cause != nil {
		l.Context, l.because = context.WithCancelCause(parent)
		l.stops = append(l.stops, func() bool { l.because(nil); return true })
	}
	f := &Following{Context: Context{Context: l}, upward: upward{stop: l.stopAll}}
	f.up = &f.upward
	c := &f.Context
	l.c = c
	in := new(inner)
	in.Context, in.end = context.WithCancelCause(l)
	c.inner.Store(in)
	if err := parent.Err(); err != nil {
		l.endWith(err, context.Cause(parent))
	} else if parent.Done() != nil {
		l.keep(on.OnDone(parent, func() { l.follow(parent) }))
	}
	expire := func() { l.endWith(context.DeadlineExceeded, cause) }
	if after == nil {
		expire()
	} else if c.Err() == nil {
		l.keep(after(expire))
	}
	return c
}

// A timed is the parent of the inner context of a Context with a deadline. It ends when the user's parent ends or the deadline passes.
// Package context takes the error of the inner context from the method Err of a timed. Otherwise only a timer of package time could make
// this error DeadlineExceeded.
type timed struct {
	context.Context                         // the user's parent, or a context with a cause, which is derived from it
	because         context.CancelCauseFunc // sets this cause, which package context takes from a context of its own only; nil without a cause
	at              time.Time
	c               *Context
	end             func() // ends the inner context; written before WithDeadline returns

	mu    atomicx.Mutex
	err   error         // is nil until the timed ends
	stops []func() bool // functions that stop the timer, and stop following the parent
}

// never is the Done channel of every timed. It is never closed, because a timed calls the function that was passed to AfterFunc instead.
var never = make(chan struct{})

func (l *timed) Deadline() (time.Time, bool) { return l.at, true }
func (l *timed) Done() <-chan struct{}       { return never }

func (l *timed) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// AfterFunc stores f in l.end. Package context calls AfterFunc before context.WithCancelCause returns.
func (l *timed) AfterFunc(f func()) (stop func() bool) {
	l.end = f
	return func() bool { return false }
}

// endWith ends the Context with err, for this cause. Later calls do nothing.
func (l *timed) endWith(err, cause error) {
	if err == nil { // the parent breaks its contract
		err = context.Canceled
	}
	l.mu.Lock()
	first := l.err == nil
	if first {
		l.err = err
	}
	l.mu.Unlock()
	if first {
		defer l.c.notifyAll() // runs even if the parent panics
		defer l.end()
		if l.because != nil {
			l.because(cause)
		}
		l.stopAll()
	}
}

// follow ends the Context with the error and the cause of the parent, which has ended. The context between the two may not have noticed this.
func (l *timed) follow(parent context.Context) {
	err, cause := context.Canceled, error(nil)
	defer func() { l.endWith(err, cause) }() // runs even if the parent panics
	err, cause = parent.Err(), context.Cause(parent)
}

// keep stores a function for stopAll to call. If the Context has ended already, keep calls the function itself.
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

// stopAll stops the timer, and stops following the parent.
func (l *timed) stopAll() bool {
	l.mu.Lock()
	stops := l.stops
	l.stops = nil
	l.mu.Unlock()
	for _, stop := range stops {
		defer stop() // calls all of them, even if the parent panics
	}
	return true
}
