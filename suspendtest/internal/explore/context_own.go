package explore

import (
	"context"
	"slices"
	"time"
)

// Context returns a context and its cancel function, which a task of the program may call. The functions registered with AfterFunc run
// later, each in a separate task, as in package context.
func (w *World) Context() (ctx context.Context, cancel func()) {
	c := &ownContext{w: w, done: make(chan struct{})}
	w.own = append(w.own, c)
	return c, c.cancel
}

// observe performs an access to c by the calling task. It has no effect without Fine.
func (c *ownContext) observe(kind accessKind) {
	if t := c.w.running(); t != nil && c.w.e.Fine {
		access(t, kind, &c.err)
	}
}

func (c *ownContext) cancel() {
	c.observe(write)
	if c.err != nil {
		return
	}
	c.err = context.Canceled
	close(c.done)
	for _, f := range c.after {
		c.w.help("after", *f)
	}
	c.after = nil
}

func (c *ownContext) AfterFunc(f func()) (stop func() bool) {
	c.observe(write)
	if c.err != nil {
		c.w.help("after", f)
		return func() bool { return false }
	}
	entry := &f
	c.after = append(c.after, entry)
	return func() bool {
		c.observe(write)
		i := slices.Index(c.after, entry)
		if i >= 0 {
			c.after = slices.Delete(c.after, i, i+1)
		}
		return i >= 0
	}
}

func (c *ownContext) Deadline() (deadline time.Time, ok bool) { return deadline, false }
func (c *ownContext) Value(any) any                           { return nil }
func (c *ownContext) Done() <-chan struct{}                   { c.observe(read); return c.done }
func (c *ownContext) Err() error                              { c.observe(read); return c.err }
