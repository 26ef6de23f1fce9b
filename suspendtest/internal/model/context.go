package model

import (
	"context"
	"sync"
	"time"

	"github.com/braidgo/braid/cancel"
)

// A ctx is a context whose method cancel cancels it with a given error. Its callbacks run before cancel returns.
type ctx struct {
	mu   sync.Mutex
	done chan struct{}
	err  error
	fs   []*func()
}

func newCtx() *ctx { return &ctx{done: make(chan struct{})} }

// as returns c. If the argument any is true, it may instead return a derived context of another kind, which id selects and which may end
// later than c.
func (c *ctx) as(id int, any bool) context.Context {
	if any {
		switch id % 3 {
		case 1:
			ctx, end := context.WithCancel(c)
			context.AfterFunc(c, end)
			return ctx
		case 2:
			ctx, end := cancel.New(c)
			context.AfterFunc(c, func() { end(nil) })
			return ctx
		}
	}
	return c
}

func (c *ctx) cancel(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	close(c.done)
	fs := c.fs
	c.fs = nil
	c.mu.Unlock()
	for _, f := range fs {
		c.mu.Lock()
		g := *f
		*f = nil
		c.mu.Unlock()
		if g != nil {
			g()
		}
	}
}

// AfterFunc registers f as a function that the method cancel calls. Package suspend uses this method if a context has it.
func (c *ctx) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		f()
		return func() bool { return false }
	}
	p := &f
	c.fs = append(c.fs, p)
	c.mu.Unlock()
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		was := *p != nil
		*p = nil
		return was
	}
}

func (c *ctx) Done() <-chan struct{} { return c.done }

func (c *ctx) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *ctx) Deadline() (time.Time, bool) { return time.Time{}, false }
func (c *ctx) Value(any) any               { return nil }
