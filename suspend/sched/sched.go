// Package sched has the capabilities that a scheduler may supply to package suspend, besides starting tasks.
//
// The functions of package suspend find a capability with suspend.As, and use a default if the scheduler lacks it. A Spawner that
// wraps another has a method Unwrap() Spawner, through which As finds the other's capabilities. The conformance kit,
// suspendtest.Scheduler, checks each capability that it finds.
//
// The contract of Unpark is a part of the contract of suspend.Task: any goroutine may make such a call, under any lock, and the call
// neither blocks nor runs a task before it returns. Callbacks run as by the method Execute of a suspend.Executor.
package sched

import (
	"context"
	"time"
)

// Timers are the timers of a scheduler. AfterFunc calls f after d, as Execute would; f must not suspend. stop reports whether it
// has prevented the call. AfterFunc obeys the contract of Unpark. A scheduler that ends passes its timers on to package time, because
// they may belong to others: the continuation of a Then, the waiters behind the first of a rate.Limiter, a context with a deadline.
// Only a simulation drops them, with its clock. Without Timers, package time supplies the timers.
type Timers interface {
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// A Clock is the clock by which the Timers run. The method Now obeys the contract of Unpark. Without a Clock, package time supplies
// the time.
type Clock interface{ Now() time.Time }

// A Rand is a source of random numbers. Select, Choose and Then draw from the source of the calling task's scheduler. A scheduler
// that repeats a run from its seed has a seeded source, so that its tasks make the same choices again. Any goroutine may call
// Uint64. Without a Rand, the numbers come from math/rand/v2.
type Rand interface{ Uint64() uint64 }

// A Blocker bounds the number of goroutines that Blocking uses. Block runs f, which may block, on such a goroutine, and does not
// wait for f. Without a Blocker, Blocking starts a goroutine for each f.
type Blocker interface{ Block(f func()) error }

// A Watcher reports the end of contexts. AfterDone calls f after ctx has ended, as Execute would. stop reports whether it has
// prevented the call. A task uses the Watcher for a context that has no AfterFunc method. Without a Watcher, context.AfterFunc
// calls f on a new goroutine. A scheduler that repeats a run from its seed cannot permit that, so its Watcher checks the Done
// channels itself.
type Watcher interface {
	AfterDone(ctx context.Context, f func()) (stop func() bool)
}

// A Holder keeps a scheduler open for a waiter without a task, such as a Then, an actor without a message, or a delayed retry.
// Until release is called, the hold counts as a suspended task, so that Run and Close wait for it. Hold returns an error that wraps
// suspend.ErrClosed if the scheduler is closed. Hold and release obey the contract of Unpark. release must be called once. Without a
// Holder, a scheduler may close during such a wait.
type Holder interface {
	Hold() (release func(), err error)
}

// A Withdrawer is a Spawner that may queue a function before it begins. GoUntil is like Go, but f may never run: if ctx ends while f is
// queued, or if the scheduler drops f, as a node of a simulation does when it crashes. Then withdrawn is called instead. If GoUntil
// returns nil, exactly one of the two functions is called. If ctx has ended, withdrawn obeys the contract of Unpark; otherwise it is
// called as a callback of a scheduler. Package scope uses GoUntil for the children of a scope, so that a scope that is cancelled does
// not wait for functions that have not begun. Without a Withdrawer, each accepted function runs.
type Withdrawer interface {
	GoUntil(ctx context.Context, f, withdrawn func()) error
}

// Stats are the statistics of a scheduler. The numbers are read one after another, and some schedulers update them only
// occasionally. Use them for dashboards, not for decisions.
type Stats struct {
	Live       int64  // accepted tasks and callbacks that have not ended
	Running    int64  // live tasks and callbacks that are running
	Suspended  int64  // live tasks that are suspended, or resumed and not yet running
	Wakes      uint64 // resumptions of suspended tasks since the scheduler began
	Steals     uint64 // times that a worker took work from another worker
	HandOvers  uint64 // hand-overs of a scheduler from a task that blocked it, see adapters/eventloop
	Outside    int64  // running tasks that are outside their scheduler after a hand-over
	Coroutines int64  // goroutines that run tasks or are kept for further tasks; 0 if each task is a goroutine of its own

	Blocking       int64 // functions that run in Blocking
	BlockingQueued int64 // functions that wait in Blocking until others have ended
}

// A Switcher is a suspend.Task that is a coroutine. The function that suspends such a task makes the switches itself, instead of
// calling Park. This keeps the number of frames small, because the processor mispredicts every return after a switch, at 10 ns
// each.
//
// Leave, or LeaveReady in a Yield, returns one of the functions next and yield, or neither. The function that suspends calls next,
// which resumes another coroutine. Then it calls Back, and repeats this until Back does not return a next. Finally it calls yield,
// if there is one. yield resumes the coroutine that has resumed this one.
type Switcher interface {
	Park()
	Unpark()
	Leave() (next func() (struct{}, bool), yield func(struct{}) bool)
	LeaveReady() (next func() (struct{}, bool), yield func(struct{}) bool)
	Back() (next func() (struct{}, bool), yield func(struct{}) bool)
}

// NewThread returns a suspend.Task that parks a goroutine natively. An adapter for a goroutine pool can decorate and bind it. The Task
// belongs to the goroutine that parks it.
func NewThread() interface {
	Park()
	Unpark()
} {
	return thread{make(chan struct{}, 1)}
}

type thread struct{ permit chan struct{} }

// Park waits for the permit.
func (t thread) Park() { <-t.permit }

// Unpark stores the permit.
func (t thread) Unpark() {
	select {
	case t.permit <- struct{}{}:
	default:
	}
}
