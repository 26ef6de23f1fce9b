package suspendtest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/braidgo/braid/cancel"
)

var background = context.Background()

// A structContext is a context that is not comparable.
type structContext struct {
	context.Context
	_ []int
}

// An ownContext calls its AfterFunc callbacks itself before cancel returns, as the contexts of package cancel do.
type ownContext struct {
	mu      sync.Mutex
	done    chan struct{}
	err     error
	fs      map[*func()]struct{}
	asked   int // number of calls of AfterFunc
	touched int // counts down with each call of a method; the call that finds 1 cancels the context
}

func newOwnContext() *ownContext {
	return &ownContext{done: make(chan struct{}), fs: map[*func()]struct{}{}}
}

// arm makes the n'th call of a method cancel the context, so that a test can cancel at any point of a Suspend.
func (c *ownContext) arm(n int) {
	c.mu.Lock()
	c.touched = n
	c.mu.Unlock()
}

func (c *ownContext) touch() {
	c.mu.Lock()
	hit := c.touched == 1
	c.touched--
	c.mu.Unlock()
	if hit {
		c.cancel()
	}
}

func (c *ownContext) cancel() {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = context.Canceled
	close(c.done)
	fs := c.fs
	c.fs = nil
	c.mu.Unlock()
	for f := range fs {
		(*f)()
	}
}

func (c *ownContext) isDone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err != nil
}

// registered returns the number of registered callbacks.
func (c *ownContext) registered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.fs)
}

func (c *ownContext) AfterFunc(f func()) (stop func() bool) {
	defer c.touch()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if c.err != nil {
		f()
		return func() bool { return false }
	}
	c.fs[&f] = struct{}{}
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, ok := c.fs[&f]
		delete(c.fs, &f)
		return ok
	}
}

func (c *ownContext) Done() <-chan struct{} { defer c.touch(); return c.done }

func (c *ownContext) Err() error {
	defer c.touch()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *ownContext) Deadline() (time.Time, bool) { return time.Time{}, false }
func (c *ownContext) Value(any) any               { return nil }

// A contextKind is a way to make a context that can be cancelled.
type contextKind struct {
	name string
	make func() (ctx context.Context, cancel func())
}

type key struct{}

var errCause = errors.New("the cause")

var contextKinds = []contextKind{
	{"WithCancel", func() (context.Context, func()) {
		ctx, cancel := context.WithCancel(background)
		return ctx, cancel
	}},
	{"WithCancelCause", func() (context.Context, func()) {
		ctx, cancel := context.WithCancelCause(background)
		return ctx, func() { cancel(errCause) }
	}},
	{"a child of the cancelled context", func() (context.Context, func()) {
		ctx, cancel := context.WithCancelCause(background)
		child, stop := context.WithCancel(ctx)
		return child, func() { cancel(errCause); stop() }
	}},
	{"WithValue of the cancelled context", func() (context.Context, func()) {
		ctx, cancel := context.WithCancelCause(background)
		return context.WithValue(ctx, key{}, 1), func() { cancel(errCause) }
	}},
	{"a context of package cancel", func() (context.Context, func()) {
		ctx, stop := cancel.New(background)
		return ctx, func() { stop(errCause) }
	}},
	{"WithValue of a context of package cancel", func() (context.Context, func()) {
		ctx, stop := cancel.New(background)
		return context.WithValue(ctx, key{}, 1), func() { stop(errCause) }
	}},
	{"a context of package cancel, as a child of the cancelled context", func() (context.Context, func()) {
		ctx, stop := context.WithCancelCause(background)
		child, end := cancel.New(ctx)
		return child, func() { stop(errCause); _ = end }
	}},
	{"a struct that cannot be compared", func() (context.Context, func()) {
		ctx, cancel := context.WithCancelCause(background)
		return structContext{Context: ctx}, func() { cancel(errCause) }
	}},
	{"a context with its own AfterFunc", func() (context.Context, func()) {
		ctx := newOwnContext()
		return ctx, ctx.cancel
	}},
	{"a child of a context with its own AfterFunc", func() (context.Context, func()) {
		ctx := newOwnContext()
		child, stop := context.WithCancelCause(ctx)
		return child, func() { ctx.cancel(); <-child.Done(); stop(nil) }
	}},
}

// allKinds contains, besides contextKinds, a context that may be done before its cancel function is called.
var allKinds = slices.Concat(contextKinds, []contextKind{
	{"WithDeadlineCause, whose deadline passes", func() (context.Context, func()) {
		ctx, stop := context.WithTimeoutCause(background, 5*time.Millisecond, errCause)
		return ctx, func() { <-ctx.Done(); stop() }
	}},
})
