package suspend

import (
	"context"
	"runtime"
)

// cancelled returns the error of a cancelled wait with ctx. If the task was killed, it exits instead.
func (b *binding) cancelled(ctx context.Context) error {
	b.settle()
	b.exitIfKilled()
	return cancellation(ctx)
}

// switchAway switches away from the task of b, which is a Switcher. If ready is true, the task stays runnable. If b is nil, switchAway
// implements Yield. After a switch the processor mispredicts every return, at 10 ns each, so Wait and Suspend have copies of this loop.
func switchAway(b *binding, ready bool) {
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

// giveWay implements Yield for a task that is not a Switcher, and for a goroutine without a task.
func (b *binding) giveWay() {
	if b != nil {
		if t, ok := methodsOf[interface{ Yield() }](b.task); ok {
			t.Yield()
			return
		}
	}
	runtime.Gosched()
}

// park calls Park for a task that is not a Switcher, until the wait that began with s has ended. If Park panics or exits the
// goroutine, park calls undo to remove the waiter.
func (b *binding) park(s state, undo func()) {
	ended := false
	b.doing = inPark
	defer func() {
		b.doing = elsewhere
		if !ended {
			b.word.abandon(s)
			b.last, b.slot, b.slots = wait{}, nil, nil // a slot may hold a value
			undo()
		}
	}()
	for b.word.pending(s) {
		b.task.Park()
	}
	ended = true
}

// Yield lets other tasks of the calling task's scheduler run before it returns. A goroutine without a task yields to other
// goroutines, and so does a task whose Task has no Yield method. Yield takes no context and cannot be cancelled.
func Yield() { switchAway(nil, true) } // the compiler inlines Yield
