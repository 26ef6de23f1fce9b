package cancelctx

import (
	"context"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
)

// WithDeadline returns a Context that ends with parent, by Cancel, or at the time at with context.DeadlineExceeded. after
// starts the timer: it calls f at that time. It is nil if the time is over.
func WithDeadline(parent context.Context, at time.Time, on Watching, after func(f func()) (stop func() bool)) *Context {
	l := &timed{Context: parent, at: at}
	f := &Following{Context: Context{Context: l}, upward: upward{stop: l.release}}
	f.up = &f.upward
	c := &f.Context
	l.c = c
	in := new(inner)
	in.Context, in.end = context.WithCancelCause(l)
	c.inner.Store(in)
	if err := parent.Err(); err != nil {
		l.over(err)
	} else if parent.Done() != nil {
		l.keep(on.OnDone(parent, l.follow))
	}
	expire := func() { l.over(context.DeadlineExceeded) }
	if after == nil {
		expire()
	} else if c.Err() == nil {
		l.keep(after(expire))
	}
	return c
}

// A timed is the parent of the inner context of a Context with a deadline. It ends when the parent proper ends or the time
// is over. Package context calls its Err, as for any context of a foreign type: a context of package context has
// DeadlineExceeded only from a timer of package time.
type timed struct {
	context.Context // the parent proper
	at              time.Time
	c               *Context
	end             func() // ends the inner context; written before WithDeadline returns

	mu    atomicx.Mutex
	err   error         // set when it is over
	stops []func() bool // stop the timer, and leave the parent
}

// never is the Done channel of a timed, which calls back instead.
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

// over ends the Context with err. The first call decides.
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
		defer l.c.notify() // runs even if the parent panics
		defer l.end()
		l.release()
	}
}

// follow is called after the parent has ended.
func (l *timed) follow() {
	err := context.Canceled
	defer func() { l.over(err) }() // runs even if the parent panics
	err = l.Context.Err()
}

// keep leaves stop to release. If the Context is over already, it calls stop.
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
		defer stop() // all of them, also if the parent panics in one
	}
	return true
}
