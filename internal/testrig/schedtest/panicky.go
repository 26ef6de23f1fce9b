package schedtest

import (
	"context"
	"sync/atomic"
	"time"
)

// A PanickyContext is a context whose method calls can panic, like a request's context that a framework has recycled.
type PanickyContext struct {
	in      context.Context
	at      int64
	onwards bool
	calls   atomic.Int64
}

// Panicky returns a context that forwards its method calls to the context in, but panics in the kth call. If onwards is true, each later
// call also panics.
func Panicky(in context.Context, k int, onwards bool) *PanickyContext {
	return &PanickyContext{in: in, at: int64(k), onwards: onwards}
}

// Reached reports whether a call has panicked.
func (c *PanickyContext) Reached() bool { return c.calls.Load() >= c.at }

// PanickyValue is the value with which a PanickyContext panics.
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

// AfterFunc registers f with the wrapped context. Packages context and suspend prefer this method to Done.
func (c PanickyAfterFunc) AfterFunc(f func()) (stop func() bool) {
	c.called()
	return context.AfterFunc(c.in, f)
}
