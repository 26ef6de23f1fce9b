package suspend_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/suspend"
)

// A foreignContext calls a function of the test in its Done.
type foreignContext struct {
	context.Context
	done  chan struct{}
	asked func()
}

func (c *foreignContext) Done() <-chan struct{} {
	c.asked()
	return c.done
}

// A task may end a context while it holds a lock of that context, and fill an MVar meanwhile. Therefore no guard may be held when
// a context's Done is called.
func TestDoneIsAskedForUnderNoGuard(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	var m mvar.MVar[int]
	var asked atomic.Int32
	c := &foreignContext{Context: bg, done: make(chan struct{}), asked: func() {
		asked.Add(1)
		used := make(chan struct{})
		go func() { m.TryRead(); close(used) }()
		<-used
	}}
	for range 2 { // the first wait with a context takes a different path from the second
		schedtest.OnFIFO(t, func(*fifo.Scheduler) {
			take, quit := suspend.CaseOf(m.TakeOp()), suspend.CaseOf(suspend.Done(c))
			if won, err := suspend.TrySelect(c, take, quit); won != nil || err != nil {
				t.Errorf("TrySelect = %v, %v", won, err)
			}
			for i := range 3 {
				_ = suspend.Here().Go(func() { _ = m.Put(bg, i) })
				if won, err := suspend.Select(c, take, quit); won != suspend.Selectable(take) || err != nil {
					t.Errorf("Select = %v, %v", won, err)
				}
			}
		})
	}
	go func() { _ = m.Put(bg, 1) }()
	if _, err := suspend.Select(c, suspend.CaseOf(m.TakeOp()), suspend.CaseOf(suspend.Done(bg))); err != nil {
		t.Error(err)
	}
	if asked.Load() == 0 {
		t.Error("never asked")
	}
}
