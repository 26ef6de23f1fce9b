// Package coro is what the bundled schedulers share: tasks that are coroutines, and the queue of a
// scheduler that runs on one goroutine.
//
// A task runs on a coroutine of iter.Pull: one switch in, one switch out, without the runtime's scheduler.
// A coroutine that has finished a task is kept for the next. It is made only by the scheduler that it belongs to, on
// the scheduler's own goroutines, because it inherits from the goroutine that makes it what the runtime insists on
// later: a locked thread, a testing/synctest bubble. It is resumed, and stopped when it is idle, by whoever runs that
// scheduler at the moment: one of its goroutines, or a task that stands in; never by two at a time.
package coro

import (
	"iter"
	"runtime/debug"
	"unsafe"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/binder"
	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/internal/prefetch"
	"github.com/braidgo/braid/suspend"
)

// A Task is one coroutine and the task that is on it, if any. Its state says what an Unpark has to do.
// -T> is the task, -W> the worker that runs it, -U> an Unpark.
//
//	active -W> parked   only after the switch back to the worker: from now on another may run it
//	parked -U> active   and the waker owes the scheduler a Ready
//	active -U> woken    the permit
//	woken  -T> active   Park returns at once
//	woken  -W> active   instead of parked: the worker owes the Ready
//
// A task that stands in for its worker, see Runner, takes the worker's part in Park itself. Where the scheduler is a
// Runner, the state belongs to that, and so does every step of it: an Unpark from elsewhere is posted to it.
//
// Invariant: only a task that is inside Park becomes parked. So an Unpark that comes late, to a task that is
// queued, running or ended, to the next task of the same coroutine or to none, leaves the permit and touches
// nothing else.
type Task struct {
	Item                  // in the queue of its Host while it is runnable
	runner   *Runner      // the host, if it is one
	posted   atomicx.Bool // set by an Unpark, reset by the Runner
	own      uint8        // the state, if there is a Runner; it belongs to that
	why      Switch       // the task's word to its worker, when it switches
	departed bool         // it was parked or queued, and counted as such, before it switched
	calls    bool         // it runs callbacks
	next     Next
	yield    Yield
	gid      atomicx.Int64 // of the coroutine's goroutine, once it has begun
	// So much is one cache line. What follows is not looked at each time.
	place   prefetch.Task
	post    Item // in the inbox of its Runner while it is posted
	host    Host
	f       func()
	Local   any            // of the worker that runs it, which writes it before Step
	state   atomicx.Uint32 // the state, if there is no Runner
	binding binder.Binding
	stop    func()
	// So much is three: each begins at a line then, and 32 bytes more would make all of it slower.
}

const (
	active = iota
	parked
	woken
)

// A Host is the scheduler of a Task.
type Host interface {
	Ready(t *Task)                    // t is runnable: queue it. Obeys Unpark's contract
	Panicked(value any, stack []byte) // called in the task
	Spawner() suspend.Spawner         // the scheduler as its users know it
}

// A Switch is the reason for which a task has given control back.
type Switch uint8

// What Step returns.
const (
	Parked  Switch = iota // it is suspended
	Yielded               // it is runnable, and the worker's to queue
	Ended                 // it has ended, and its coroutine is free
	Exited                // it has ended by runtime.Goexit, and its coroutine with it
)

// Next and Yield are the two ends of a coroutine.
type (
	Next  = func() (struct{}, bool)
	Yield = func(struct{}) bool
)

// Park implements suspend.Task.
func (t *Task) Park() {
	next, yield := t.Leave(nil, nil)
	for next != nil {
		next()
		next, yield = t.Back()
	}
	if yield != nil {
		yield(struct{}{})
	}
}

// Leave is Park up to the switch, which is left to the caller: after a switch the processor predicts no return correctly,
// so there are to be few. The caller calls next, if that is not nil, and then asks Back how to go on, until it is nil; and
// then yield, if that is not nil.
func (t *Task) Leave(slot, node unsafe.Pointer) (next Next, yield Yield) {
	t.place.Leave()
	t.place.With(slot, node)
	r := t.runner
	switch {
	case r == nil:
		if t.state.Load() == woken {
			t.state.Store(active) // an Unpark leaves a woken task alone
			return nil, nil
		}
		t.why = Parked
		return nil, t.yield
	case t.own == woken:
		t.own = active
		return nil, nil
	}
	t.why = Parked
	if !r.mayStandIn() {
		return nil, t.yield
	}
	t.own = parked
	r.suspended++
	return r.standIn(t)
}

// Yield gives others a turn.
func (t *Task) Yield() {
	next, yield := t.LeaveReady()
	for next != nil {
		next()
		next, yield = t.Back()
	}
	if yield != nil {
		yield(struct{}{})
	}
}

// LeaveReady is Leave for a task that lets others have a turn.
func (t *Task) LeaveReady() (next Next, yield Yield) {
	t.place.Leave()
	t.why = Yielded
	r := t.runner
	if r == nil || !r.mayStandIn() {
		return nil, t.yield
	}
	r.put(&t.Item)
	return r.standIn(t)
}

// Back is called after next has returned.
func (t *Task) Back() (next Next, yield Yield) {
	r := t.runner
	if r.running != nil {
		r.left(r.running)
	}
	return r.turn()
}

// Unpark implements suspend.Task.
func (t *Task) Unpark() {
	if r := t.runner; r != nil {
		r.unpark(t)
		return
	}
	for {
		switch t.state.Load() {
		case parked:
			if t.state.CompareAndSwap(parked, active) {
				t.host.Ready(t)
				return
			}
		case active:
			if t.state.CompareAndSwap(active, woken) {
				return
			}
		default:
			return
		}
	}
}

// Spawner returns the scheduler.
func (t *Task) Spawner() suspend.Spawner { return t.host.Spawner() }

// New makes a coroutine, without a task, for the calling worker.
func New(h Host) *Task {
	t := &Task{host: h}
	t.runner, _ = h.(*Runner)
	t.Item.task, t.post.task = t, t
	t.next, t.stop = iter.Pull(t.body())
	return t
}

// NewCaller makes a coroutine that is given callbacks only, which its Host does not count.
func NewCaller(h Host) *Task {
	t := New(h)
	t.calls = true
	return t
}

// Fetch has fetched what t needs to go on. It is called by who has t in a queue.
func (t *Task) Fetch() {
	t.place.Fetch()
	prefetch.Data(&t.binding)
	prefetch.Func(&t.next)
}

// Start gives an idle coroutine its next task. Step begins it.
func (t *Task) Start(f func()) { t.f = f }

// Step runs t until it parks, yields or ends. It is called by one worker at a time, with a task that is
// runnable.
func (t *Task) Step() Switch {
	t.next()
	why := t.why // read before it is parked: then another worker may be running it
	switch {
	case why == Parked && !t.commit():
		return Yielded
	case why == Exited:
		t.reap()
	}
	return why
}

// commit parks a task that has switched in order to park; false says that it was woken before, and is runnable.
func (t *Task) commit() bool {
	if t.runner != nil {
		if t.own == active {
			t.own = parked
			return true
		}
		t.own = active
		return false
	}
	if t.state.CompareAndSwap(active, parked) {
		return true
	}
	t.state.Store(active)
	return false
}

// reap lets the coroutine of a task that has exited end.
func (t *Task) reap() {
	defer func() { _ = recover() }() // goexit
	t.next()
}

// Stop ends an idle coroutine.
func (t *Task) Stop() { t.stop() }

// goexit is what a body panics with instead of exiting: iter.Pull would hand the exit on to the worker.
type goexit struct{}

// body is what the coroutine runs: one task after another. Between iter.Pull and a task are the frames of this and of run,
// and no more: a task has what is left of the two kilobytes of its first stack, and a larger one is most of what a
// task costs that does little.
func (t *Task) body() func(Yield) {
	return func(yield Yield) {
		unbind := t.begin(yield)
		done := false
		defer func() { t.end(done, recover()) }()
		defer unbind()
		for {
			if t.run(); !t.again() && !yield(struct{}{}) {
				done = true
				return
			}
		}
	}
}

func (t *Task) begin(yield Yield) (unbind func()) {
	t.yield = yield
	t.gid.Store(gid.Get())
	t.place.Begin()
	t.binding, unbind = binder.Goroutine(t)
	return unbind
}

func (t *Task) run() {
	defer func() {
		if v := recover(); v != nil {
			defer t.binding.Forget() // should a hook wait
			t.panicked(v, debug.Stack())
		} // or it is a Goexit, and goes on to body
	}()
	defer t.binding.Forget() // which calls a context
	f := t.f
	t.f = nil
	f()
}

// panicked tells the hook. As a callback may not suspend, what is told of its panic may not: nobody would wait for it.
func (t *Task) panicked(value any, stack []byte) {
	if t.calls {
		suspend.Bind(nil, func() { t.host.Panicked(value, stack) })
		return
	}
	t.host.Panicked(value, stack)
}

// again reports whether the Runner has a new task that can begin at once.
func (t *Task) again() bool {
	if r := t.runner; r != nil && !t.calls {
		if t.f = r.nextNew(); t.f != nil {
			return true
		}
	}
	t.why = Ended
	return false
}

// end is the last that the coroutine does. If it is not done, its task has exited.
func (t *Task) end(done bool, panicked any) {
	if panicked != nil { // a hook that was told of a panic, or a context
		Crash(panicked, debug.Stack())
	}
	if done {
		return
	}
	t.why = Exited
	t.yield(struct{}{}) // to be reaped: nothing comes out of any other next
	panic(goexit{})
}

// Crash ends the process as an unrecovered panic of a goroutine does, with the stack of the task, which
// would be lost if the panic went through the coroutine. It does not return.
func Crash(value any, stack []byte) {
	go func() { panic(&taskPanic{value, stack}) }()
	select {}
}
