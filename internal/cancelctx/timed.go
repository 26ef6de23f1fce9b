package cancelctx

import (
	"context"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
)

// WithDeadline returns a Context that ends when parent ends, when Cancel is called, or with context.DeadlineExceeded when the deadline
// passes. The last argument is a function that starts a timer, which calls f at the deadline. It is nil if the deadline has already
// passed.
func WithDeadline(parent context.Context, at time.Time, on Watching, after func(f func()) (stop func() bool)) *Context {
	l := &timed{Context: parent, at: at}
	f := &Following{Context: Context{Context: l}, upward: upward{stop: l.stopAll}}
	f.up = &f.upward
	c := &f.Context
	l.c = c
	in := new(inner)
	in.Context, in.end = context.WithCancelCause(l)
	c.inner.Store(in)
	if err := parent.Err(); err != nil {
		l.endWith(err)
	} else if parent.Done() != nil {
		l.keep(on.OnDone(parent, l.follow))
	}
	expire := func() { l.endWith(context.DeadlineExceeded) }
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
	context.Context // the user's parent
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

// endWith ends the Context with err. Later calls do nothing.
func (l *timed) endWith(err error) {
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
		l.stopAll()
	}
}

// follow ends the Context with the error of the parent, which has ended.
func (l *timed) follow() {
	err := context.Canceled
	defer func() { l.endWith(err) }() // runs even if the parent panics
	err = l.Context.Err()
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
