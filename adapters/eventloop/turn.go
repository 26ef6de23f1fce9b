package eventloop

import "github.com/braidgo/braid/suspend"

// A turn is the lock of one direction of a descriptor. It is held across suspensions, and it is handed over in order. A
// Close does not resume the waiters: each fails when its turn comes. It is the suspend.Source of the wait.
//
// Invariant: while somebody waits, it is held. Debt: give resumes the first waiter that can take it.
type turn struct {
	guard   suspend.Guard
	held    bool
	waiters suspend.Queue[struct{}, struct{}]
}

// takeSlow returns with the turn, or with the cancellation error and without. The caller has found it held. If one of several
// contexts panics as its AfterFunc is stopped, the turn is lost.
func (t *turn) takeSlow(cs contexts) error {
	ctx, stop := cs.join()
	if stop != nil {
		defer stop()
	}
	if _, err := suspend.Wait[struct{}](ctx, (*taking)(t), false); err != nil {
		return cs.explain(err)
	}
	return nil
}

// give ends the turn.
func (t *turn) give() {
	t.guard.Lock()
	if _, ok := t.waiters.Resume(struct{}{}, nil); !ok {
		t.held = false
	}
	t.guard.Unlock()
}

// taking is what takeSlow performs.
type taking turn

func (t *taking) Guard() *suspend.Guard               { return &t.guard }
func (t *taking) Enqueue(r suspend.Resumer[struct{}]) { t.waiters.Push(r, struct{}{}) }
func (t *taking) Remove(r suspend.Resumer[struct{}])  { t.waiters.Remove(r) }

func (t *taking) Try() (none struct{}, ok bool, err error) {
	ok = !t.held
	t.held = true
	return none, ok, nil
}
