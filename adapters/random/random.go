// Package random is a scheduler for tests. It runs tasks one after another, on the goroutine that calls Run, and after
// every step picks any runnable one.
//
//	s := random.New(random.Options{Seed: seed})
//	err := s.Run(ctx, test)
//	if err != nil {
//		t.Fatalf("seed %d: %v", s.Seed(), err)
//	}
//
// It is an adversary: a program that relies on an order fails under some seed. But it is repeatable: the same program
// with the same seed runs in the same order, as long as all wake-ups come from its own tasks.
//
// It is driven like package fifo, and like it parks its caller when nothing is runnable, so it nests. To try all orders of a small
// program use suspendtest.Explore.
package random

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/braidgo/braid/adapters/internal/runner"
	"github.com/braidgo/braid/adapters/internal/seeded"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/suspend"
)

// Options are the choices that a Scheduler is made with. The zero value is the default.
type Options struct {
	// Seed determines the order, and the choices of Select, Choose and Then. Zero means a new random seed, which the method Seed
	// returns.
	Seed uint64

	// Preempt says that other tasks may run where an operation begins that could wait, also if it need not: a lock, a receive, a
	// transaction. Without it a task runs until it waits, and two sections that are not atomic together look as if they were.
	Preempt bool

	// OnPanic is called in a task that has panicked, or a callback, with the value and the stack. The task ends then, and nothing
	// else. By default the process ends, as it does when a goroutine panics. In a callback it must not suspend.
	OnPanic func(value any, stack []byte)

	// OnIdle, if not nil, is called each time that tasks are left and none of them is runnable, before Run parks its
	// caller: on the goroutine of Run, not in a task. If it suspends, it suspends the Run.
	OnIdle func()

	// StallAfter is how long a task may run without suspending or yielding. Then its stack is reported to OnStall, and
	// again whenever the time has doubled. A nil OnStall writes to standard error. 0 means a second; negative: never.
	// In a testing/synctest bubble nothing is reported, and among more than 16,000 goroutines later: a report stops the process, for 15 µs
	// each.
	StallAfter time.Duration
	OnStall    func(report []byte)
}

// A Scheduler runs tasks during one Run. It is made by New.
type Scheduler struct {
	opts Options
	core *runner.Driven
	draw seeded.Source // tasks draw from it

	// The rest belongs to the goroutine of Run.
	rand     *rand.Rand
	runnable []*runner.Item
}

// New returns a Scheduler on which nothing runs yet. Tasks and callbacks that are submitted before Run wait for it.
func New(o Options) *Scheduler {
	for o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	s := &Scheduler{opts: o, rand: rand.New(rand.NewPCG(o.Seed, 0))}
	s.draw.Seed(o.Seed)
	s.core = runner.NewDriven(s, s.next, o.OnIdle, o.OnPanic)
	if o.Preempt {
		s.core.Preempt = func() bool { return s.rand.Uint64()&1 > 0 }
	}
	return s
}

// Run is New with the default Options, and Run.
func Run(ctx context.Context, main func(ctx context.Context) error) error {
	return New(Options{}).Run(ctx, main)
}

// Seed returns the seed that repeats the order of s.
func (s *Scheduler) Seed() uint64 { return s.opts.Seed }

// Run runs main as a task, with ctx. While tasks are left it runs them on the calling goroutine, or parks its caller.
// It returns the result of main when every task has ended, including tasks that were started from elsewhere. ctx is
// passed to main only: a Run cannot be cancelled, its tasks can.
//
// If ctx is done already, Run returns the cancellation error and does nothing. Only one Run is possible: a second returns
// suspend.ErrClosed. If main ends by runtime.Goexit (a failing require), so does Run, when every other task has ended.
func (s *Scheduler) Run(ctx context.Context, main func(ctx context.Context) error) error {
	if s.opts.Preempt {
		defer preempt.Begin()()
	}
	return s.core.Drive(ctx, runner.Drive{Name: "random", StallAfter: s.opts.StallAfter, OnStall: s.opts.OnStall}, main)
}

// next picks a runnable item, each with the same probability.
func (s *Scheduler) next() *runner.Item {
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

// Go runs f as a task, in any order. It may be called from any goroutine, before Run and during it. When Run has returned, or is about
// to, Go returns suspend.ErrClosed and f never runs.
func (s *Scheduler) Go(f func()) error { return s.core.Go(f) }

// Execute runs f as a callback, in any order, and Run waits for it as for a task. f must not suspend: suspend.Suspend panics in it. When
// Run has returned, or is about to, Execute returns suspend.ErrClosed and f never runs.
func (s *Scheduler) Execute(f func()) error { return s.core.Execute(f) }

// Uint64 is the random source of the tasks, see Options.Seed and suspend.Rand.
func (s *Scheduler) Uint64() uint64 { return s.draw.Uint64() }

// OnIdle calls f once, as Options.OnIdle is called. Several functions are called in order.
func (s *Scheduler) OnIdle(f func()) {
	if f == nil {
		panic("random: nil function")
	}
	s.core.OnIdle(f)
}

// Hold keeps Run from returning until release is called, see suspend.Holder.
func (s *Scheduler) Hold() (release func(), err error) { return s.core.Hold() }

// Stats returns the statistics of the scheduler.
func (s *Scheduler) Stats() suspend.Stats { return s.core.Stats() }
