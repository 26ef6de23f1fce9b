package eventloop

import "github.com/braidgo/braid/suspend"

// A turn is the lock of one direction of a descriptor. An operation holds the turn even while it is suspended. Waiters
// get the turn in order. A Close does not resume the waiters: each operation fails when it gets the turn.
//
// Invariant: while a task waits, the turn is held. Debt: the method give must resume the first waiter that can take the
// turn.
type turn struct {
	guard   suspend.Guard
	held    bool
	waiters suspend.Queue[struct{}, struct{}]
}

// takeSlow waits for a turn that another operation holds. If a context ends the wait, takeSlow returns the cancellation
// error. The turn is lost if one of several contexts panics in the stop function of its AfterFunc.
func (t *turn) takeSlow(cs contexts) error {
	ctx, stop := cs.join()
	if stop != nil {
		defer stop()
	}
	if _, err := suspend.Wait[struct{}](ctx, (*taking)(t)); err != nil {
		return cs.explain(err)
	}
	return nil
}

// give hands the turn over to the first waiter. If there is no waiter, give frees the turn.
func (t *turn) give() {
	t.guard.Lock()
	if _, ok := t.waiters.Resume(struct{}{}, nil); !ok {
		t.held = false
	}
	t.guard.Unlock()
}

// A taking is the suspend.Source of a wait for the turn.
type taking turn

func (t *taking) Guard() *suspend.Guard               { return &t.guard }
func (t *taking) Enqueue(r suspend.Resumer[struct{}]) { t.waiters.Push(r, struct{}{}) }
func (t *taking) Remove(r suspend.Resumer[struct{}])  { t.waiters.Remove(r) }

func (t *taking) Try() (none struct{}, ok bool, err error) {
	ok = !t.held
	t.held = true
	return none, ok, nil
}
