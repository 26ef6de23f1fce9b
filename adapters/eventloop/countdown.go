package eventloop

import (
	"context"

	"github.com/braidgo/braid/suspend"
)

// A countdown is waited for until it is back at zero. It is the suspend.Source of the wait.
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

// done subtracts 1. Debt: the last call resumes every waiter.
func (c *countdown) done() {
	c.guard.Lock()
	if c.n--; c.n == 0 {
		c.waiters.ResumeAll(struct{}{}, nil)
	}
	c.guard.Unlock()
}

func (c *countdown) wait() { _ = c.waitFor(context.Background()) }

// waitFor is wait, up to the end of ctx.
func (c *countdown) waitFor(ctx context.Context) error {
	_, err := suspend.Wait[struct{}](ctx, c, false)
	return err
}

func (c *countdown) Guard() *suspend.Guard                    { return &c.guard }
func (c *countdown) Try() (none struct{}, ok bool, err error) { return none, c.n == 0, nil }
func (c *countdown) Enqueue(r suspend.Resumer[struct{}])      { c.waiters.Push(r, struct{}{}) }
func (c *countdown) Remove(r suspend.Resumer[struct{}])       { c.waiters.Remove(r) }
