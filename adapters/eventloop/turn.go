package eventloop

import "github.com/braidgo/braid/suspend"

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
