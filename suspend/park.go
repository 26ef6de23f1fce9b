package suspend

import (
	"context"
	"runtime"
)

// cancelled returns the error of a wait with ctx that was cancelled, by ctx or else by Kill.
func (b *binding) cancelled(ctx context.Context) error {
	b.exitIfKilled()
	return cancellation(ctx)
}

// leave makes the switches of a Switcher whose task is parked, or ready. Without a b it is Yield. After a switch the
// processor predicts no return correctly, 10 ns each. So Wait has this loop in its own frame, and this one serves all others.
func leave(b *binding, ready bool) {
	if b == nil {
		if b = current(); b == nil || b.switcher == nil {
			b.giveWay()
			return
		}
	}
	var next func() (struct{}, bool)
	var yield func(struct{}) bool
	if ready {
		next, yield = b.switcher.LeaveReady()
	} else {
		next, yield = b.switcher.Leave()
	}
	for next != nil {
		next()
		next, yield = b.switcher.Back()
	}
	if yield != nil {
		yield(struct{}{})
	}
	if ready {
		b.exitIfKilled()
	}
}

// giveWay is Yield without a Switcher.
func (b *binding) giveWay() {
	if b != nil {
		if t, ok := b.task.(interface{ Yield() }); ok {
			t.Yield()
			return
		}
	}
	runtime.Gosched()
}

// park parks a Task that is no Switcher until the wait that began with s has ended. If its Park panics or exits, undo withdraws the
// waiter.
func (b *binding) park(s state, undo func()) {
	ended := false
	defer func() {
		if !ended {
			b.word.abandon(s)
			b.last, b.slot, b.slots = wait{}, nil, nil // a value may be in a slot
			undo()
		}
	}()
	for b.word.pending(s) {
		b.task.Park()
	}
	ended = true
}

// Yield lets other tasks of the calling task's scheduler run before it returns. A goroutine that has no task
// yields to other goroutines, and so does a task whose scheduler has no such notion. Yield is not cancellable.
func Yield() { leave(nil, true) } // inlined
