package runner

import (
	"github.com/braidgo/braid/adapters/internal/coro"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// A Task is a coroutine of a Runner, with the task that is on it, if any.
type Task struct {
	Item   // queued while the task is runnable
	runner atomicx.Pointer[Runner]
	coro.Coroutine

	posted  atomicx.Bool // set by an Unpark from elsewhere, reset by the Runner
	calls   bool         // it runs callbacks
	outside uint8        // steps to make outside, see caution
	period  uint8        // the caution's period in which the task proved itself
	slow    bool         // the last step outside was; belongs to the step
	at      int32        // its place in the Runner's coroutines
	post    Item         // queued in the inbox while posted
	// 192 bytes: each begins at a cache line then
}

// The state of a Task, in Mark, belongs to the Runner: it changes only on the goroutine that the Runner runs on. An Unpark from
// elsewhere is posted to the Runner. -T> is the task, -U> an Unpark on the Runner or one that has been posted.
//
//	active -T> parked   Park. The switch follows
//	parked -U> active   and the task goes to the end of the list
//	active -U> woken    the permit
//	woken  -T> active   Park returns at once
//
// Invariant: only a task that is inside Park is parked. So an Unpark that comes late, to a task that is runnable, runs
// or has ended, or to the next task of the same coroutine, leaves the permit and touches nothing else.
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

// Leave implements suspend.Switcher.
func (t *Task) Leave() (next coro.Next, yield coro.Yield) { return t.runner.Load().park(t) }

// LeaveReady implements suspend.Switcher.
func (t *Task) LeaveReady() (next coro.Next, yield coro.Yield) { return t.runner.Load().yield(t) }

// Back implements suspend.Switcher.
func (t *Task) Back() (next coro.Next, yield coro.Yield) { return t.runner.Load().back() }

// Preempt says whether the scheduler wants to switch, see suspend.Preemptible.
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

// Panicked implements coro.Owner. A callback must not suspend, so the hook that is called with its panic must not
// suspend: nothing would wait for it.
func (t *Task) Panicked(value any, stack []byte) {
	r := t.runner.Load()
	if t.calls {
		suspend.Bind(nil, func() { r.panicked(value, stack) })
		return
	}
	r.panicked(value, stack)
}
