// Package fifo is a scheduler that runs tasks one after another, on the goroutine that calls Run, in the order in which
// they become runnable.
//
//	err := fifo.Run(ctx, func(ctx context.Context) error {
//		answer := promise.Go(ctx, suspend.Here(), ask) // a second task
//		v, err := answer.Await(ctx)                    // the first one waits, the second runs
//		...
//	})
//
// Given the same wake-ups it does the same: it preempts no task, and the first runnable task runs first. So it suits
// tests, batches that go out when no task can run (OnIdle), and a separate thread of control. It uses one processor.
//
// A task whose operations never have to wait is not preempted either: it keeps other tasks from running, unless it
// calls suspend.Yield. StallAfter reports it.
//
// A task that suspends lets the next one run. When none is runnable, Run parks its caller until a wake-up comes from elsewhere. In a task
// of another scheduler it parks only that task, so schedulers nest.
//
// Use adapters/random for tests that must not depend on the order, and adapters/workstealing for several processors. examples/scheduler
// is a scheduler of this kind to read.
package fifo

import (
	"context"
	"time"

	"github.com/braidgo/braid/adapters/internal/runner"
	"github.com/braidgo/braid/adapters/internal/seeded"
	"github.com/braidgo/braid/suspend"
)

// Options are the choices that a Scheduler is made with. The zero value is the default.
type Options struct {
	// Seed determines the choices of Select, Choose and Then on this scheduler. By default all programs have the same seed, so two
	// runs choose the same.
	Seed uint64

	// OnPanic is called in a task that has panicked, or a callback, with the value and the stack. The task ends then, and nothing
	// else. By default the process ends, as it does when a goroutine panics. In a callback it must not suspend.
	OnPanic func(value any, stack []byte)

	// StallAfter is how long a task may run without suspending or yielding. Then its stack is reported to OnStall, at most a
	// fortieth later, and again whenever the time has doubled. So are tasks that wait natively one after another, if together
	// they keep a runnable task waiting for as long. A nil OnStall writes to standard error. 0 means a second; negative: never.
	// In a testing/synctest bubble nothing is reported, and among more than 16,000 goroutines later: a report stops the process, for 15 µs
	// each.
	StallAfter time.Duration
	OnStall    func(report []byte)

	// OnIdle, if not nil, is called each time that tasks are left and none of them is runnable, as the OnIdle of the
	// Scheduler is called once.
	OnIdle func()

	// LockOSThread keeps Run, and so all tasks, on one thread, which Run locks. Such a Run can not be nested.
	LockOSThread bool
}

// A Scheduler runs tasks during one Run. It is made by New.
type Scheduler struct {
	opts Options
	core runner.Driven
	rand seeded.Source
}

// New returns a Scheduler on which nothing runs yet. Tasks and callbacks that are submitted before Run wait for it.
func New(o Options) *Scheduler {
	s := &Scheduler{opts: o}
	s.rand.Seed(o.Seed)
	s.core.Init(s, nil, o.OnIdle, o.OnPanic)
	return s
}

// Run is New with the default Options, and Run.
func Run(ctx context.Context, main func(ctx context.Context) error) error {
	return New(Options{}).Run(ctx, main)
}

// Run runs main as the first task, with ctx. While tasks are left it runs them on the calling goroutine, or parks its
// caller. It returns the result of main when every task has ended, including tasks that were started from elsewhere.
// ctx is passed to main only: a Run cannot be cancelled, its tasks can.
//
// If ctx is done already, Run returns the cancellation error and does nothing. Only one Run is possible: a second returns
// suspend.ErrClosed. If main ends by runtime.Goexit (a failing require), so does Run, when every other task has ended.
func (s *Scheduler) Run(ctx context.Context, main func(ctx context.Context) error) error {
	return s.core.Drive(ctx, runner.Drive{
		Name:         "fifo",
		StallAfter:   s.opts.StallAfter,
		OnStall:      s.opts.OnStall,
		LockOSThread: s.opts.LockOSThread,
	}, main)
}

// Go runs f as a task, after everything that is runnable now. It may be called from any goroutine, before Run and during it. When Run
// has returned, or is about to, Go returns suspend.ErrClosed and f never runs.
func (s *Scheduler) Go(f func()) error { return s.core.Go(f) }

// Execute runs f as a callback, in the same order as tasks, and Run waits for it as for a task. f must not suspend: suspend.Suspend
// panics in it. When Run has returned, or is about to, Execute returns suspend.ErrClosed and f never runs.
func (s *Scheduler) Execute(f func()) error { return s.core.Execute(f) }

// OnIdle registers f to be called once, the next time that tasks are left and none of them is runnable, before Run
// parks its caller. f runs on the goroutine of Run and not in a task: if it suspends, it suspends the Run. Several
// functions are called in order, and each only if no task has become runnable in the meantime. When every task has
// ended, the rest is not called. A layer that collects requests dispatches them here, as no task is left to add another
// one.
func (s *Scheduler) OnIdle(f func()) {
	if f == nil {
		panic("fifo: nil function")
	}
	s.core.OnIdle(f)
}

// Uint64 is the random source of the tasks, see Options.Seed and suspend.Rand.
func (s *Scheduler) Uint64() uint64 { return s.rand.Uint64() }

// Hold keeps Run from returning until release is called, see suspend.Holder.
func (s *Scheduler) Hold() (release func(), err error) { return s.core.Hold() }

// Stats returns the statistics of the scheduler.
func (s *Scheduler) Stats() suspend.Stats { return s.core.Stats() }
