// Package fifo provides a scheduler that runs tasks one after another, on the goroutine that calls Run, in the order in
// which they become runnable.
//
//	err := fifo.Run(ctx, func(ctx context.Context) error {
//		answer := promise.Go(ctx, suspend.Here(), ask) // a second task
//		v, err := answer.Await(ctx)                    // the first one waits, the second runs
//		...
//	})
//
// The scheduler is deterministic, given the same wake-ups, because it preempts no task and always runs the first runnable
// task. Use it for tests, to send batches when no task can run (OnIdle), or as a separate thread of control. It uses one
// processor.
//
// A task whose operations never wait keeps other tasks from running, unless it calls suspend.Yield. Such a task is
// reported; see Options.StallAfter.
//
// When a task suspends, the next runnable task runs. When no task is runnable, Run parks its caller until another goroutine
// wakes a task. If the caller is a task of another scheduler, only this task is parked, so schedulers can be nested.
//
// Use adapters/random for tests that must not depend on the order, and adapters/workstealing for several processors. For
// the source code of a small scheduler of this kind, see examples/scheduler.
package fifo

import (
	"context"
	"time"

	"github.com/braidgo/braid/adapters/internal/runner"
	"github.com/braidgo/braid/adapters/internal/seeded"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

// Options configure a Scheduler. The zero Options are the defaults.
type Options struct {
	// Seed determines the random choices of Select, Choose and Then on this scheduler. The default is the same seed for all
	// programs, so that two runs make the same choices.
	Seed uint64

	// OnPanic is called in a task or callback that has panicked, with the value and the stack of the panic. Only this task
	// or callback ends. If OnPanic is nil, the panic ends the process, as in a goroutine. In a callback OnPanic must not
	// suspend.
	OnPanic func(value any, stack []byte)

	// StallAfter is the time for which a task may run without suspending or yielding. After this time the task's stack is
	// reported to OnStall, at most a fortieth of StallAfter late, and again whenever the time has doubled. Tasks that wait
	// natively one after another are also reported if together they delay a runnable task by StallAfter. If OnStall is nil,
	// reports are written to standard error. A StallAfter of 0 means one second, and a negative value disables the reports.
	// In a testing/synctest bubble there are no reports. On a busy machine a report may come later. With more than 16,000 goroutines reports
	// are delayed, because a report stops the process for 15 µs per goroutine.
	StallAfter time.Duration
	OnStall    func(report []byte)

	// OnIdle, if not nil, is called on the goroutine of Run whenever tasks are left but none of them is runnable. The
	// method Scheduler.OnIdle registers a function for a single call.
	OnIdle func()

	// LockOSThread makes Run lock its thread, so that all tasks run on this thread. Such a Run cannot be nested. A task must
	// not suspend while it has itself locked the thread once more, or while C code has called it: the Go runtime would end
	// the process.
	LockOSThread bool
}

// errClosed is the error of a Scheduler whose Run has ended, or is about to end.
var errClosed = outcome.Named("fifo: closed", suspend.ErrClosed)

// A Scheduler runs tasks during a single Run.
type Scheduler struct {
	opts Options
	core runner.Driven
	rand seeded.Source
}

// New returns a Scheduler that does not run yet. Tasks and callbacks may be submitted before the call of Run; they begin
// during Run.
func New(o Options) *Scheduler {
	s := &Scheduler{opts: o}
	s.rand.Seed(o.Seed)
	s.core.Init(s, nil, o.OnIdle, o.OnPanic, errClosed)
	return s
}

// Run calls Scheduler.Run on a new Scheduler with the default Options.
func Run(ctx context.Context, main func(ctx context.Context) error) error {
	return New(Options{}).Run(ctx, main)
}

// Run calls main with ctx in the first task. It runs all tasks on the calling goroutine, and parks its caller while no task
// is runnable. It returns the result of main after every task has ended, including tasks that other goroutines have
// started. ctx is passed only to main; a Run cannot be cancelled, but its tasks can.
//
// If ctx has already ended, Run returns the cancellation error and does nothing. A second Run returns an error that wraps suspend.ErrClosed. If
// main calls runtime.Goexit, for example through t.FailNow, Run does the same after every other task has ended.
func (s *Scheduler) Run(ctx context.Context, main func(ctx context.Context) error) error {
	return s.core.Drive(ctx, runner.Drive{
		Name:         "fifo",
		StallAfter:   s.opts.StallAfter,
		OnStall:      s.opts.OnStall,
		LockOSThread: s.opts.LockOSThread,
	}, main)
}

// Go runs f as a task, after all tasks and callbacks that are runnable now. It may be called from any goroutine, before and
// during Run. When Run has returned or is about to return, Go returns an error that wraps suspend.ErrClosed, and f
// never runs.
func (s *Scheduler) Go(f func()) error { return s.core.Go(f) }

// Execute runs f as a callback. Callbacks and tasks share one queue. Run also waits for callbacks. f must not suspend;
// suspend.Suspend panics if it does. When Run has returned or is about to return, Execute returns an error that wraps suspend.ErrClosed,
// and f never runs.
func (s *Scheduler) Execute(f func()) error { return s.core.Execute(f) }

// OnIdle registers f to be called once, the next time tasks are left but none of them is runnable, before Run parks its
// caller. f runs on the goroutine of Run, not in a task, so if f suspends, it suspends Run. If several functions are
// registered, they are called in order, each only if no task has become runnable in the meantime. When every task has
// ended, the remaining functions are not called. A package that collects requests can send them in f, because no task can
// add another request at that time.
func (s *Scheduler) OnIdle(f func()) {
	if f == nil {
		panic("fifo: nil function")
	}
	s.core.OnIdle(f)
}

// Uint64 returns a random number for the tasks of s; see Options.Seed and sched.Rand.
func (s *Scheduler) Uint64() uint64 { return s.rand.Uint64() }

// Hold keeps Run from returning until release is called; see sched.Holder.
func (s *Scheduler) Hold() (release func(), err error) { return s.core.Hold() }

// Stats returns the statistics of the scheduler.
func (s *Scheduler) Stats() sched.Stats { return s.core.Stats() }
