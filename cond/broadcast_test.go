package cond_test

import (
	"testing"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/cond"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/suspend"
)

// An eager task calls first before it is made runnable, as if it ran on another processor before the call that wakes it returned.
type eager struct {
	suspend.Task
	first func()
}

func (e eager) Unpark() {
	e.first()
	e.Task.Unpark()
}

// A Broadcast wakes two waiters, and the first cancels the second at once. The second returns nil: the Broadcast has woken it,
// and must not be mistaken for the cancellation.
func TestBroadcastWakesWhomTheWokenCancel(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		c := cond.New(new(mutex.Mutex))
		var second *waiter
		first := error(nil)
		_ = s.Go(func() {
			suspend.Bind(&eager{suspend.Self(), func() { second.cancel() }}, func() {
				c.L.Lock()
				first = c.Wait(bg)
				c.L.Unlock()
			})
		})
		schedtest.Settle()
		second = start(s, c)
		schedtest.Settle()
		c.Broadcast()
		schedtest.Settle()
		if first != nil || !second.ended || second.err != nil {
			t.Errorf("first %v, second %+v", first, second)
		}
		late := start(s, c)
		schedtest.Settle()
		c.Signal() // the two waiters have left nothing behind
		schedtest.Settle()
		if !late.ended || late.err != nil {
			t.Errorf("late %+v", late)
		}
	})
}
