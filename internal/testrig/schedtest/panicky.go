package schedtest

import (
	"context"
	"sync/atomic"
	"time"
)

// A PanickyContext is a context one of whose method calls panics, like the context of a request that a framework has recycled.
type PanickyContext struct {
	in      context.Context
	at      int64
	onwards bool
	calls   atomic.Int64
}

// Panicky returns a context like in whose k'th method call panics, and with onwards each later call.
func Panicky(in context.Context, k int, onwards bool) *PanickyContext {
	return &PanickyContext{in: in, at: int64(k), onwards: onwards}
}

// Reached reports whether a call has panicked.
func (c *PanickyContext) Reached() bool { return c.calls.Load() >= c.at }

// PanickyValue is the value of its panics.
const PanickyValue = "schedtest: the context panics"

func (c *PanickyContext) called() {
	if n := c.calls.Add(1); n == c.at || c.onwards && n > c.at {
		panic(PanickyValue)
	}
}

// Deadline implements context.Context.
func (c *PanickyContext) Deadline() (time.Time, bool) { c.called(); return c.in.Deadline() }

// Done implements context.Context.
func (c *PanickyContext) Done() <-chan struct{} { c.called(); return c.in.Done() }

// Err implements context.Context.
func (c *PanickyContext) Err() error { c.called(); return c.in.Err() }

// Value implements context.Context.
func (c *PanickyContext) Value(key any) any { c.called(); return c.in.Value(key) }

// A PanickyAfterFunc is a PanickyContext with a method AfterFunc.
type PanickyAfterFunc struct{ *PanickyContext }

// AfterFunc is the method that package context and package suspend look for first.
func (c PanickyAfterFunc) AfterFunc(f func()) (stop func() bool) {
	c.called()
	return context.AfterFunc(c.in, f)
}
