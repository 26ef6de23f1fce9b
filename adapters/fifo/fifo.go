// Package fifo is a scheduler that runs tasks one at a time, on the goroutine that calls Run, in the order in
// which they become runnable. Given the same wake-ups it does the same: no task is preempted, and what becomes
// runnable first runs first. It is the one to read first.
//
// A task that suspends lets the next one run. When none is runnable, Run parks its caller until a wake-up comes
// from elsewhere; inside a task of another scheduler it parks that task and not what runs it, so schedulers nest.
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
	// Seed determines what Select, Choose and Then choose on this scheduler. The default is a seed as good as any, so that
	// two runs of a program choose the same.
	Seed uint64

	// OnPanic is called in a task that has panicked, or a callback, with the value and the stack. The task ends then, and nothing
	// else. By default the process ends, as it does when a goroutine panics. In a callback it must not suspend.
	OnPanic func(value any, stack []byte)

	// StallAfter is how long a task may run without suspending or yielding. Then its stack is reported to OnStall, or
	// on standard error if that is nil, and again whenever the time has doubled. 0 means a second; negative: never.
	// In a testing/synctest bubble nothing is reported.
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
	core *runner.Driven
	rand seeded.Source
}

// New returns a Scheduler on which nothing runs yet. What is submitted before Run waits for it.
func New(o Options) *Scheduler {
	s := &Scheduler{opts: o}
	s.rand.Seed(o.Seed)
	s.core = runner.NewDriven(s, nil, o.OnIdle, o.OnPanic)
	return s
}

// Run is New with the default Options, and Run.
func Run(ctx context.Context, main func(ctx context.Context) error) error {
	return New(Options{}).Run(ctx, main)
}

// Run runs main as the first task, with ctx, and returns what main returned once every task has ended, those
// included that came from elsewhere. While tasks are left it runs them, on the calling goroutine, or parks its
// caller. ctx reaches main and nothing else: a Run cannot be cancelled, its tasks can.
//
// If ctx is done already, Run returns the error of the cancellation and has done nothing. A Scheduler has one
// Run: a second returns suspend.ErrClosed. If main ends by runtime.Goexit (a failing require), so does Run, once
// every other task has ended.
func (s *Scheduler) Run(ctx context.Context, main func(ctx context.Context) error) error {
	return s.core.Drive(ctx, runner.Drive{
		Name:         "fifo",
		StallAfter:   s.opts.StallAfter,
		OnStall:      s.opts.OnStall,
		LockOSThread: s.opts.LockOSThread,
	}, main)
}

// Go has f run as a task, after everything that is runnable now. It may be called from any goroutine, before Run
// and during it; when Run has returned, or is about to, it returns suspend.ErrClosed and f never runs.
func (s *Scheduler) Go(f func()) error { return s.core.Go(f) }

// Execute has f run as a callback, in the same order as tasks; Run waits for it as for a task. f must not
// suspend; suspend.Suspend panics in it. When Run has returned, or is about to, Execute returns
// suspend.ErrClosed and f never runs.
func (s *Scheduler) Execute(f func()) error { return s.core.Execute(f) }

// OnIdle has f called once, the next time that tasks are left and none of them is runnable, before Run parks its
// caller. f runs on the goroutine of Run and not in a task: if it suspends, it suspends the Run. Of several, one is
// called at a time, in order, and only if nothing has become runnable in the meantime. What is left when every
// task has ended is not called. A layer that collects requests dispatches them here: nobody is left who could add
// another.
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

// Stats returns what the scheduler says of itself.
func (s *Scheduler) Stats() suspend.Stats { return s.core.Stats() }
