// Package callback makes a scheduler of a loop that you do not own and that can only run a callback: the main thread of a GUI toolkit, a
// network loop, a JavaScript engine, a worker pool.
//
// A handler on such a loop must not wait, so it is cut into callbacks. As a task it waits in direct style, and the loop goes on:
//
//	type toolkit struct{}
//
//	func (toolkit) Execute(f func()) error { gui.RunOnMainThread(f); return nil }
//
//	loop := callback.New(toolkit{}, callback.Options{})
//	err := loop.Go(func() { // on the main thread
//		answer, err := ask(ctx) // suspends the task
//		...
//	})
//
// A Loop runs no two tasks in parallel, on any executor. For tasks that run in parallel on a pool of goroutines use
// adapters/limited. If you can choose the loop, use adapters/eventloop. docs/gui.md and docs/javascript.md are
// tutorials, and adapters/callback/foreigntest has executors for ants, gopool, gnet and goja_nodejs.
//
// # Shutdown
//
// Cancel the contexts of the tasks, Close the Loop, and then end the executor: its tasks end where they ran. If the
// executor ends first and refuses steps with suspend.ErrClosed, the Loop gives it up: the tasks that are left go on
// goroutines of the Loop, still one step after another, and Close waits for them. An executor that accepts a step and
// never runs it looks like a busy executor, so use CloseContext with a limit there.
//
// Coroutines that were made on a locked thread can run on no other. If such an executor ends first, the Loop abandons the
// tasks that are left and refuses new ones, and Close returns ErrThread.
//
// # The executor's own goroutine
//
// A task is a coroutine, so it runs on the executor's thread but not on its goroutine. A toolkit that compares the
// identities of goroutines (Fyne does) refuses it: call such a toolkit by OnExecutor, see docs/gui.md.
package callback

import (
	"context"
	"time"

	"github.com/braidgo/braid/adapters/internal/coro"
	"github.com/braidgo/braid/adapters/internal/runner"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// Options are the choices that a Loop is made with. The zero value is the default.
type Options struct {
	// Direct says that the executor obeys the contract of suspend.Executor to the letter: it may be called under any
	// lock, never blocks, and never runs a callback inline. By default a goroutine calls it, under no lock, so any
	// executor will do: it may be bounded and block, run callbacks inline, or take its own lock.
	Direct bool

	// OnPanic is called in a task that has panicked, or a callback, with the value and the stack. The task ends then,
	// and nothing else. By default the process ends, as it does when a goroutine panics. In a callback it must not
	// suspend.
	OnPanic func(value any, stack []byte)

	// StallAfter is how long a task may run without suspending or yielding. Then its stack is reported to OnStall, at most a
	// fortieth later, and again whenever the time has doubled. So are tasks that wait natively one after another, if together
	// they keep a runnable task waiting for as long. A nil OnStall writes to standard error. 0 means a second; negative: never.
	// In a testing/synctest bubble nothing is reported, and among more than 16,000 goroutines later: a report stops the process, for 15 µs
	// each.
	StallAfter time.Duration
	OnStall    func(report []byte)
}

// A Loop runs tasks and callbacks, in the order in which they become runnable, on an executor of others. The executor
// runs single steps, so that the loop that it belongs to can do its own work between two steps. It is asked once for
// each time that there is something to do after there was nothing. A Loop is made by New.
//
// The executor may run the steps on any goroutine, as long as each happens after the step before has been submitted. If
// it is a thread that is locked (a GUI's main thread, say), it has to be the same one for all.
type Loop struct {
	exec   suspend.Executor
	direct bool
	core   *runner.Runner
	stalls *coro.Stalls
	start  func(f func()) // starts a goroutine
	run    func()         // one step
	gone   promise.Promise[struct{}]

	// See steps.go.
	asked   atomicx.Bool
	givenUp atomicx.Bool
	closed  atomicx.Bool
	looked  bool // says that locked is set; the step that runs owns both
	locked  bool // the goroutine is locked to its thread
}

// New returns a Loop on exec. If exec refuses a step with an error that is suspend.ErrClosed, it refuses for good.
// After any other error, such as a full queue's, the Loop tries again, less and less often.
func New(exec suspend.Executor, o Options) *Loop {
	if exec == nil {
		panic("callback: nil executor")
	}
	l := &Loop{exec: exec, direct: o.Direct, stalls: coro.WatchStalls(o.StallAfter, o.OnStall), start: func(f func()) { go f() }}
	l.run = l.runNext
	l.core = runner.New(l, l.wake, o.OnPanic)
	l.core.Watch(l.stalls)
	l.core.Sleep() // returns when there is something to do
	return l
}

// Go runs f as a task. After Close it returns suspend.ErrClosed and f never runs.
func (l *Loop) Go(f func()) error { return l.core.Go(f) }

// Execute runs f as a callback; f must not suspend, suspend.Suspend panics in it. After Close it returns
// suspend.ErrClosed and f never runs. Use the Loop, and not its executor, as the Executor of suspend.Then: the Loop
// calls its executor under no lock.
func (l *Loop) Execute(f func()) error { return l.core.Execute(f) }

// Hold keeps Close from returning until release is called, see suspend.Holder.
func (l *Loop) Hold() (release func(), err error) { return l.core.Hold() }

// Stats returns the statistics of the Loop.
func (l *Loop) Stats() suspend.Stats { return l.core.Stats() }

// Close refuses new work from now on, and returns once every task and callback has ended; it suspends only its caller.
// If the executor has ended, see the package comment, the error is nil, or ErrThread. It panics in a task or callback of
// the Loop itself. On the executor's own thread it would wait for itself.
func (l *Loop) Close() error { return l.CloseContext(context.Background()) }

// CloseContext is Close for an executor that may have ended without a word. If ctx is done before all has ended, or
// already, the executor is given up, and CloseContext returns the cancellation error. Tasks may still be ending then;
// a further Close waits for them. The executor may be asked for one step more, which does nothing.
func (l *Loop) CloseContext(ctx context.Context) error {
	if suspend.Within(l) {
		panic("callback: Close called from a task of the loop")
	}
	suspend.Self() // panics in a callback, before anything is closed
	l.closed.Store(true)
	if l.core.Close() && l.core.Rouse() {
		l.wake() // the last step needs it
	}
	_, err := l.gone.Await(ctx)
	if err != nil && err != ErrThread {
		l.giveUp()
	}
	return err
}
