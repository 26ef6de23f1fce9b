package eventloop

import (
	"context"

	"github.com/braidgo/braid/suspend"
)

// A countdown is a counter, and the suspend.Source of waits until the counter is zero.
type countdown struct {
	guard   suspend.Guard
	n       int
	waiters suspend.Queue[struct{}, struct{}]
}

func (c *countdown) add(n int) {
	c.guard.Lock()
	c.n += n
	c.guard.Unlock()
}

// done decrements the counter. Debt: a call that brings the counter to zero must resume every waiter.
func (c *countdown) done() {
	c.guard.Lock()
	if c.n--; c.n == 0 {
		c.waiters.ResumeAll(struct{}{}, nil)
	}
	c.guard.Unlock()
}

func (c *countdown) isZero() bool {
	c.guard.Lock()
	defer c.guard.Unlock()
	return c.n == 0
}

func (c *countdown) wait() { _ = c.waitFor(context.Background()) }

// waitFor is like the method wait, but fails with the cancellation error when ctx is done.
func (c *countdown) waitFor(ctx context.Context) error {
	_, err := suspend.Wait[struct{}](ctx, c)
	return err
}

func (c *countdown) Guard() *suspend.Guard                    { return &c.guard }
func (c *countdown) Try() (none struct{}, ok bool, err error) { return none, c.n == 0, nil }
func (c *countdown) Enqueue(r suspend.Resumer[struct{}])      { c.waiters.Push(r, struct{}{}) }
func (c *countdown) Remove(r suspend.Resumer[struct{}])       { c.waiters.Remove(r) }
