// Package random provides a scheduler for tests, which picks the next runnable task at random, from a seed. It runs tasks
// one after another, on the goroutine that calls Run.
//
//	s := random.New(random.Options{Seed: seed})
//	err := s.Run(ctx, test)
//	if err != nil {
//		t.Fatalf("seed %d: %v", s.Seed(), err)
//	}
//
// The scheduler is an adversary: a program that relies on an order of its tasks fails with some seed. But a run is
// repeatable: the same program with the same seed runs in the same order, provided that all wake-ups come from its own
// tasks.
//
// As in package fifo, Run parks its caller while no task is runnable, so schedulers can be nested. To try all orders of a
// small program, use suspendtest.Explore.
package random

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/braidgo/braid/adapters/internal/runner"
	"github.com/braidgo/braid/adapters/internal/seeded"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

// Options configure a Scheduler. The zero Options are the defaults.
type Options struct {
	// Seed determines the order of the tasks and the choices of Select, Choose and Then. Zero means a new random seed,
	// which the method Seed returns.
	Seed uint64

	// Preempt lets other tasks run before any operation that could wait, such as a lock, a receive or a transaction, even
	// if the operation does not wait. Without Preempt a task runs until it waits, so that a sequence of operations that is
	// not atomic may appear to be atomic.
	Preempt bool

	// OnPanic is called in a task or callback that has panicked, with the value and the stack of the panic. Only this task
	// or callback ends. If OnPanic is nil, the panic ends the process, as in a goroutine. In a callback OnPanic must not
	// suspend.
	OnPanic func(value any, stack []byte)

	// OnIdle, if not nil, is called whenever tasks are left but none of them is runnable, before Run parks its caller. It
	// runs on the goroutine of Run, not in a task, so if OnIdle suspends, it suspends Run.
	OnIdle func()

	// StallAfter is the time for which a task may run without suspending or yielding. After this time the task's stack is
	// reported to OnStall, and again whenever the time has doubled. If OnStall is nil, reports are written to standard
	// error. A StallAfter of 0 means one second, and a negative value disables the reports. In a testing/synctest bubble
	// there are no reports. With more than 16,000 goroutines reports are delayed, because a report stops the process for 15
	// µs per goroutine.
	StallAfter time.Duration
	OnStall    func(report []byte)
}

// errClosed is the error of a Scheduler whose Run has ended, or is about to end.
var errClosed = outcome.Named("random: closed", suspend.ErrClosed)

// A Scheduler runs tasks during a single Run.
type Scheduler struct {
	opts Options
	core *runner.Driven
	draw seeded.Source // the random source of the tasks

	// Only the goroutine of Run uses the fields below.
	rand     *rand.Rand
	runnable []*runner.Item
}

// New returns a Scheduler that does not run yet. Tasks and callbacks may be submitted before the call of Run; they begin
// during Run.
func New(o Options) *Scheduler {
	for o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	s := &Scheduler{opts: o, rand: rand.New(rand.NewPCG(o.Seed, 0))}
	s.draw.Seed(o.Seed)
	s.core = runner.NewDriven(s, s.popRandom, o.OnIdle, o.OnPanic, errClosed)
	if o.Preempt {
		s.core.Preempt = func() bool { return s.rand.Uint64()&1 > 0 }
	}
	return s
}

// Seed returns the seed of s. Another Scheduler with this seed repeats the order of s.
func (s *Scheduler) Seed() uint64 { return s.opts.Seed }

// Run calls main with ctx in a task. It runs all tasks on the calling goroutine, and parks its caller while no task is
// runnable. It returns the result of main after every task has ended, including tasks that other goroutines have started.
// ctx is passed only to main; a Run cannot be cancelled, but its tasks can.
//
// If ctx has already ended, Run returns the cancellation error and does nothing. A second Run returns an error that wraps suspend.ErrClosed. If
// main calls runtime.Goexit, for example through t.FailNow, Run does the same after every other task has ended.
func (s *Scheduler) Run(ctx context.Context, main func(ctx context.Context) error) error {
	if s.opts.Preempt {
		defer preempt.Begin()()
	}
	return s.core.Drive(ctx, runner.Drive{Name: "random", StallAfter: s.opts.StallAfter, OnStall: s.opts.OnStall}, main)
}

// popRandom removes a random runnable item and returns it, or nil if there is none.
func (s *Scheduler) popRandom() *runner.Item {
	for it := s.core.Next(); it != nil; it = s.core.Next() {
		s.runnable = append(s.runnable, it)
	}
	n := len(s.runnable)
	if n == 0 {
		return nil
	}
	i := s.rand.IntN(n)
	it := s.runnable[i]
	s.runnable[i] = s.runnable[n-1]
	s.runnable[n-1] = nil
	s.runnable = s.runnable[:n-1]
	return it
}

// Go runs f as a task. Tasks and callbacks run in random order. Go may be called from any goroutine, before and during Run.
// When Run has returned or is about to return, Go returns an error that wraps suspend.ErrClosed, and f
// never runs.
func (s *Scheduler) Go(f func()) error { return s.core.Go(f) }

// Execute runs f as a callback. Callbacks and tasks run in random order. Run also waits for callbacks. f must not suspend;
// suspend.Suspend panics if it does. When Run has returned or is about to return, Execute returns an error that wraps suspend.ErrClosed,
// and f never runs.
func (s *Scheduler) Execute(f func()) error { return s.core.Execute(f) }

// Uint64 returns a random number for the tasks of s; see Options.Seed and sched.Rand.
func (s *Scheduler) Uint64() uint64 { return s.draw.Uint64() }

// Hold keeps Run from returning until release is called; see sched.Holder.
func (s *Scheduler) Hold() (release func(), err error) { return s.core.Hold() }

// Stats returns the statistics of the scheduler.
func (s *Scheduler) Stats() sched.Stats { return s.core.Stats() }
