// Package callback makes a scheduler of somebody else's loop, one that offers nothing but to run a callback: a GUI
// toolkit's main thread, a network loop, a worker pool. Tasks on it suspend without blocking the loop.
package callback

import (
	"context"
	"time"

	"github.com/braidgo/braid/adapters/internal/coro"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// Options are the choices that a Loop is made with. The zero value is the default.
type Options struct {
	// Direct says that the executor obeys the contract of suspend.Executor to the letter: it may be called under any
	// lock, never blocks, and never runs a callback inline. By default a goroutine calls it, under no lock, so any
	// executor will do: a bounded one that blocks, one that runs callbacks inline, one that wants a lock of its own.
	Direct bool

	// OnPanic is called in a task that has panicked, or a callback, with the value and the stack. The task ends then, and nothing
	// else. By default the process ends, as it does when a goroutine panics. In a callback it must not suspend.
	OnPanic func(value any, stack []byte)

	// StallAfter is how long a task may run without suspending or yielding. Then its stack is reported to OnStall, or
	// on standard error if that is nil, and again whenever the time has doubled. 0 means a second; negative: never.
	// In a testing/synctest bubble nothing is reported.
	StallAfter time.Duration
	OnStall    func(report []byte)
}

// A Loop runs tasks and callbacks, in the order in which they become runnable, on an executor of others. It has the
// executor run one step at a time, so that the loop that it belongs to can do its own work between two of them, and
// asks for it once for each time that there is something to do after there was nothing. It is made by New.
//
// The executor may run the steps on any goroutine, as long as each happens after the one before has been asked for. If
// it is a thread that is locked (a GUI's main thread, say), it has to be the same one for all.
type Loop struct {
	exec   suspend.Executor
	direct bool
	core   *coro.Runner
	stalls *coro.Stalls
	gone   promise.Promise[struct{}]
}

// New returns a Loop on exec. Should exec refuse a step, as one does whose queue is full, the Loop asks again, less and
// less often; it has to be closed before an exec that will refuse for good.
func New(exec suspend.Executor, o Options) *Loop {
	if exec == nil {
		panic("callback: nil executor")
	}
	l := &Loop{exec: exec, direct: o.Direct, stalls: coro.WatchStalls(o.StallAfter, o.OnStall)}
	l.core = coro.NewRunner(l, l.wake, o.OnPanic)
	l.core.Watch(l.stalls)
	l.core.Sleep() // until there is something to do
	return l
}

// Go has f run as a task. After Close it returns suspend.ErrClosed and f never runs.
func (l *Loop) Go(f func()) error { return l.core.Go(f) }

// Execute has f run as a callback; f must not suspend, suspend.Suspend panics in it. After Close it returns
// suspend.ErrClosed and f never runs. Use the Loop, and not its executor, as the Executor of suspend.Then: what the
// Loop is given under a lock it hands on under none.
func (l *Loop) Execute(f func()) error { return l.core.Execute(f) }

// Stats returns what the Loop says of itself.
func (l *Loop) Stats() suspend.Stats { return l.core.Stats() }

// Close refuses new work from now on, and returns once every task and callback has ended; it suspends only its caller.
// It panics in a task or callback of the Loop itself.
func (l *Loop) Close() error {
	if suspend.Here() == suspend.Spawner(l) {
		panic("callback: Close called from a task of the loop")
	}
	suspend.Self() // panics in a callback, before anything is closed
	if l.core.Close() && l.core.Rouse() {
		l.wake() // for the last step
	}
	_, err := l.gone.Await(context.Background())
	return err
}

// wake obeys Unpark's contract. One step is under way at a time: it is asked for by whoever ends a sleep, or by the step
// before.
func (l *Loop) wake() {
	if l.direct {
		l.handOver()
	} else {
		go l.handOver()
	}
}

func (l *Loop) handOver() {
	if l.exec.Execute(l.step) != nil {
		go l.insist()
	}
}

func (l *Loop) insist() {
	for pause := time.Millisecond; ; pause = min(2*pause, time.Second) {
		time.Sleep(pause)
		if l.exec.Execute(l.step) == nil {
			return
		}
	}
}

// step runs on the executor.
func (l *Loop) step() {
	if it := l.core.Next(); it != nil {
		l.core.Run(it)
		l.stalls.End()
	}
	l.after()
}

// after is what comes after a step: the last, another, or sleep.
func (l *Loop) after() {
	if l.core.Done() && l.core.Empty() {
		l.core.Release()
		l.stalls.Stop()
		_ = l.gone.Fill(struct{}{})
		return
	}
	if l.core.Empty() && l.core.Sleep() {
		// If it was closed meanwhile, the last step is still to come, and somebody else may have seen to it.
		if !l.core.Done() || !l.core.Rouse() {
			return
		}
	}
	l.wake()
}
