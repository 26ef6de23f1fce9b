// Package callback turns a foreign event loop into a scheduler. The loop needs only a way to run a callback; examples are
// the main thread of a GUI toolkit, a network loop, a JavaScript engine and a worker pool.
//
// A handler on such a loop must not block, so it is usually split into callbacks. A task waits in direct style instead,
// while the loop continues to run:
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
// tutorials, and examples/libraries/executors has executors for ants, gopool, gnet and goja_nodejs.
//
// # Shutdown
//
// To shut down, cancel the contexts of the tasks, close the Loop, and then stop the executor, so that all tasks end on the
// executor. If the executor stops first and refuses steps with suspend.ErrClosed, the Loop abandons the executor: the
// remaining tasks run on goroutines of the Loop, still one after another, and Close waits for them. The Loop cannot
// distinguish a busy executor from an executor that never runs an accepted step. If the executor has stopped and drops the
// steps without an error, call Abandon.
//
// Coroutines that were created on a locked thread cannot run on another thread. If an executor on a locked thread stops
// before the Loop is closed, the Loop abandons the remaining tasks and refuses new tasks, and Close returns ErrThread. On
// such an executor, a task must not suspend while it has itself locked the thread once more, or while C code has called it:
// the Go runtime would end the process.
//
// # The executor's own goroutine
//
// A task is a coroutine, so it runs on the executor's thread, but not on the executor's goroutine. Some toolkits, such as
// Fyne, check the identity of the calling goroutine and reject calls from a task. Call such a toolkit through OnExecutor;
// see docs/gui.md.
package callback

import (
	"context"
	"time"

	"github.com/braidgo/braid/adapters/internal/closable"
	"github.com/braidgo/braid/adapters/internal/runner"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/coro"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

// Options configure a Loop. The zero Options are the defaults.
type Options struct {
	// Direct declares that the executor fulfils the contract of suspend.Executor exactly: it may be called under any lock,
	// never blocks, and never runs a callback inline. By default a separate goroutine calls the executor without holding a
	// lock, so that the executor may block, run callbacks inline, or take its own lock.
	Direct bool

	// OnPanic is called in a task or callback that has panicked, with the value and the stack of the panic. Only this task
	// or callback ends. If OnPanic is nil, the panic ends the process, as in a goroutine. In a callback OnPanic must not
	// suspend.
	OnPanic func(value any, stack []byte)

	// StallAfter is the time for which a task may run without suspending or yielding. After this time the task's stack is
	// reported to OnStall, at most a fortieth of StallAfter late, and again whenever the time has doubled. Tasks that wait
	// natively one after another are also reported if together they delay a runnable task by StallAfter. If OnStall is nil,
	// reports are written to standard error. A StallAfter of 0 means one second, and a negative value disables the reports.
	// In a testing/synctest bubble there are no reports. On a busy machine a report may come later. With more than 16,000 goroutines reports are delayed, because a
	// report stops the process for 15 µs per goroutine.
	StallAfter time.Duration
	OnStall    func(report []byte)
}

// errClosed is the error of work that a closed Loop refuses.
var errClosed = outcome.Named("callback: closed", suspend.ErrClosed)

// A Loop runs tasks and callbacks on a foreign executor, in the order in which they become runnable. The Loop submits
// single steps, so that the executor's own loop can do other work between two steps.
//
// The executor may run the steps on any goroutines, provided that the submission of each step happens before its run. If it
// runs them on a locked thread, such as a GUI's main thread, all steps must run on the same thread.
type Loop struct {
	exec   suspend.Executor
	direct bool
	core   *runner.Runner
	stalls *coro.Stalls
	start  func(f func()) // runs f on a new goroutine
	run    func()         // runs one step
	gone   promise.Promise[struct{}]

	// The comment in steps.go explains these fields.
	asked     atomicx.Bool
	abandoned atomicx.Bool
	closed    atomicx.Bool
	looked    bool // the field locked has been set; only the running step uses these two fields
	locked    bool // the goroutine that runs the steps is locked to its thread
}

// New returns a Loop on exec. If exec refuses a step with an error that wraps suspend.ErrClosed, the Loop abandons exec as Abandon does.
// After any other error, such as a full queue, the Loop retries at growing intervals.
func New(exec suspend.Executor, o Options) *Loop {
	if exec == nil {
		panic("callback: nil executor")
	}
	l := &Loop{exec: exec, direct: o.Direct, stalls: coro.WatchStalls(o.StallAfter, o.OnStall), start: func(f func()) { go f() }}
	l.run = l.runNext
	l.core = runner.New(l, l.wake, o.OnPanic, errClosed)
	l.core.Watch(l.stalls)
	l.core.Sleep() // so that the first Go or Execute calls l.wake
	return l
}

// Go runs f as a task. After Close, Go returns an error that wraps suspend.ErrClosed, and f never runs.
func (l *Loop) Go(f func()) error { return l.core.Go(f) }

// Execute runs f as a callback. f must not suspend; suspend.Suspend panics if it does. After Close, Execute returns
// an error that wraps suspend.ErrClosed, and f never runs. Pass the Loop, and not its executor, to suspend.Then, because the Loop calls its
// executor without holding a lock.
func (l *Loop) Execute(f func()) error { return l.core.Execute(f) }

// Hold keeps Close from returning until release is called; see sched.Holder.
func (l *Loop) Hold() (release func(), err error) { return l.core.Hold() }

// Stats returns the statistics of the Loop.
func (l *Loop) Stats() sched.Stats { return l.core.Stats() }

// Close makes the Loop refuse new work, and suspends its caller until every task and callback has ended. This wait cannot be
// cancelled. The error is nil, or ErrThread if the executor stopped first; see the package comment. A second Close waits in the
// same way, and returns the same error. Close panics in a task or callback of the Loop itself. It must not be called on the
// executor's own thread, because it would wait for itself.
func (l *Loop) Close() error {
	return l.closeUntil(context.Background(), "callback: Close called from a task of the loop")
}

// Shutdown is Close with a limit: if ctx ends before every task and callback has ended, Shutdown returns the cancellation
// error. The Loop is closed then, but its tasks run on, on the executor, because a scheduler cannot end a task. A later Close or
// Shutdown continues the wait. If nothing is left, Shutdown returns nil even if ctx has ended, or ErrThread as Close does; but the
// first Shutdown of an idle Loop needs a last step, for which it waits only until ctx ends. Like Close, Shutdown panics in a task
// or callback of the Loop.
//
// Tasks of the Loop cannot start tasks there after a Close or Shutdown: a scope.Map on suspend.Here() fails, and a continuation of
// suspend.Then whose result comes later runs on a goroutine of its own. So shut down listeners and stages first, and the Loop
// last.
//
// If the executor may have stopped without a word, call Abandon after an error of Shutdown.
func (l *Loop) Shutdown(ctx context.Context) error {
	return l.closeUntil(ctx, "callback: Shutdown called from a task of the loop")
}

func (l *Loop) closeUntil(ctx context.Context, inTask string) error {
	if suspend.Within(l) {
		panic(inTask)
	}
	suspend.Self() // Self panics in a callback, before the Loop is closed
	l.closed.Store(true)
	if l.core.Close() && l.core.Rouse() {
		l.wake() // requests the last step
	}
	return closable.Wait(ctx, &l.gone)
}
