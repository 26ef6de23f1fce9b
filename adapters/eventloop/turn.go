package eventloop

import (
	"context"

	"github.com/braidgo/braid/suspend"
)

// A turn is the lock of one direction of a descriptor. It is held across suspensions, and who waits for it
// suspends; in order, by hand-over. A Close does not reach those who wait: each, when its turn comes, finds out.
type turn struct {
	guard   suspend.Guard
	held    bool
	waiters suspend.Queue[struct{}, struct{}]
}

// takeSlow returns with the turn, or with the error of the cancellation and without. The caller has found it held.
func (t *turn) takeSlow(cs contexts) error {
	ctx, stop := cs.join()
	if stop != nil {
		defer stop()
	}
	var self suspend.Resumer[struct{}]
	_, err := suspend.Suspend(ctx, func(r suspend.Resumer[struct{}]) (struct{}, bool) {
		t.guard.Lock()
		defer t.guard.Unlock()
		if !t.held {
			t.held = true
			return struct{}{}, true
		}
		self = r
		t.waiters.Push(r, struct{}{})
		return struct{}{}, false
	})
	if err != nil {
		t.guard.Lock()
		t.waiters.Remove(self)
		t.guard.Unlock()
		return cs.explain(err)
	}
	return nil
}

// give ends the turn: it owes the first waiter that can take it a resume.
func (t *turn) give() {
	t.guard.Lock()
	if _, ok := t.waiters.Resume(struct{}{}, nil); !ok {
		t.held = false
	}
	t.guard.Unlock()
}

// contexts are those that an operation fails with, the newest first. Nil: none.
type contexts []context.Context

// err is the error of the first that is done.
func (cs contexts) err() error {
	for _, c := range cs {
		if err := suspend.Err(c); err != nil {
			return err
		}
	}
	return nil
}

// join returns one context to wait with. The others reach it only until stop, so that a wait leaves nothing behind.
func (cs contexts) join() (ctx context.Context, stop func()) {
	switch len(cs) {
	case 0:
		return context.Background(), nil
	case 1:
		return cs[0], nil
	}
	ctx, cancel := context.WithCancel(cs[0])
	var stops []func() bool
	for _, c := range cs[1:] {
		if done := c.Done(); done != nil && done != cs[0].Done() {
			stops = append(stops, context.AfterFunc(c, cancel))
		}
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel()
	}
}

// explain returns the error of the context that has ended a wait with err.
func (cs contexts) explain(err error) error {
	if len(cs) > 1 {
		if cause := cs.err(); cause != nil {
			return cause
		}
	}
	return err
}
