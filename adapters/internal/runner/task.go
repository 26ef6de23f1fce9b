package runner

import (
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/coro"
	"github.com/braidgo/braid/suspend"
)

// A Task is a coroutine of a Runner, with the task that runs on the coroutine, if any.
type Task struct {
	Item   // queued while the task is runnable
	runner atomicx.Pointer[Runner]
	coro.Coroutine

	posted  atomicx.Bool // set by an Unpark on another goroutine, reset by the Runner
	calls   bool         // the coroutine runs callbacks
	outside uint8        // the number of further steps that must run outside; see caution
	period  uint8        // the caution's period in which the task proved itself
	slow    bool         // the last step outside was slow; written by the goroutine of that step
	at      int32        // the index of the Task in Runner.all
	post    Item         // the Item in the inbox while posted is true
	// The size is 192 bytes, so that each Task begins at a cache line.
}

// The field Mark is the state of a Task. It belongs to the core of the Runner. An Unpark on another goroutine is posted
// to the Runner. -T> is the task, -U> an Unpark on the Runner, or a posted Unpark.
//
//	active -T> parked   Park, before the switch
//	parked -U> active   and the task goes to the end of the list
//	active -U> woken    the permit
//	woken  -T> active   Park returns at once
//
// Invariant: only a task that is inside Park is parked. A late Unpark may find the task runnable, running or ended, or
// may find the next task of the same coroutine. Such an Unpark leaves a permit behind and changes nothing else.
const (
	active uint8 = iota
	parked
	woken
)

func newTask(r *Runner) *Task {
	t := new(Task)
	t.runner.Store(r)
	t.Item.task, t.post.task = t, t
	t.Init(t)
	t.WatchedBy(r.stalls)
	if r.lease != nil {
		t.Prime()
	}
	return t
}

// Leave implements sched.Switcher.
func (t *Task) Leave() (next coro.Next, yield coro.Yield) { return t.runner.Load().park(t) }

// LeaveReady implements sched.Switcher.
func (t *Task) LeaveReady() (next coro.Next, yield coro.Yield) { return t.runner.Load().yield(t) }

// Back implements sched.Switcher.
func (t *Task) Back() (next coro.Next, yield coro.Yield) { return t.runner.Load().back() }

// Preempt reports whether the scheduler wants the task to yield; see suspend.Preemptible.
func (t *Task) Preempt() (yield bool) {
	f := t.runner.Load().Preempt
	return f != nil && f()
}

// Unpark implements suspend.Task.
func (t *Task) Unpark() { t.runner.Load().unpark(t) }

// Spawner returns the scheduler.
func (t *Task) Spawner() suspend.Spawner { return t.runner.Load().self }

// Another implements coro.Owner.
func (t *Task) Another() func() {
	if t.calls {
		return nil
	}
	return t.runner.Load().nextNew()
}

// Panicked implements coro.Owner. The onPanic hook must not suspend after a panic in a callback, because nothing would
// wait for the hook.
func (t *Task) Panicked(value any, stack []byte) {
	r := t.runner.Load()
	if t.calls {
		suspend.Bind(nil, func() { r.panicked(value, stack) })
		return
	}
	r.panicked(value, stack)
}
