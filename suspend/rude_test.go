package suspend_test

import (
	"context"
	"slices"
	"sync"
	"time"
)

// errRude is the value with which a method of a rudeContext panics.
const errRude = "schedtest: a context panics"

// A rudeContext is a context whose k-th method call panics, as the methods of a reused context of a request may do. The functions
// that AfterFunc has returned also count as methods. Cancel calls the registered functions.
type rudeContext struct {
	mu    sync.Mutex
	k     int
	calls int
	done  chan struct{}
	first func(call int) // called before a panic, if not nil
	err   error
	after []*func()
}

// newRude returns a context whose k-th method call panics. With k = 0, none does.
func newRude(k int) *rudeContext { return &rudeContext{k: k, done: make(chan struct{})} }

// Panicked reports whether the context has had k calls.
func (c *rudeContext) Panicked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.k > 0 && c.calls >= c.k
}

func (c *rudeContext) called() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls++; c.calls == c.k {
		if c.first != nil {
			c.first(c.calls)
		}
		panic(errRude)
	}
}

// Registered returns the number of registered functions.
func (c *rudeContext) Registered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.after)
}

// Cancel ends the context.
func (c *rudeContext) Cancel() {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = context.Canceled
	close(c.done)
	after := c.after
	c.after = nil
	c.mu.Unlock()
	for _, f := range after {
		(*f)()
	}
}

// AfterFunc is the optional method that packages suspend and context look for.
func (c *rudeContext) AfterFunc(f func()) (stop func() bool) {
	c.called()
	c.mu.Lock()
	over := c.err != nil
	entry := &f
	if !over {
		c.after = append(c.after, entry)
	}
	c.mu.Unlock()
	if over {
		f()
	}
	return func() bool {
		c.called()
		c.mu.Lock()
		defer c.mu.Unlock()
		i := slices.Index(c.after, entry)
		if i >= 0 {
			c.after = slices.Delete(c.after, i, i+1)
		}
		return i >= 0
	}
}

// Done implements context.Context.
func (c *rudeContext) Done() <-chan struct{} {
	c.called()
	return c.done
}

// Err implements context.Context.
func (c *rudeContext) Err() error {
	c.called()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Deadline implements context.Context.
func (c *rudeContext) Deadline() (time.Time, bool) {
	c.called()
	return time.Time{}, false
}

// Value implements context.Context.
func (c *rudeContext) Value(any) any {
	c.called()
	return nil
}
