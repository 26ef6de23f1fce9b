// Package random is a scheduler for tests: it runs tasks one at a time, on the goroutine that calls Run, and after
// every step picks any of those that are runnable. It is an adversary, so a program that relies on an order fails
// under some seed, and it is a repeatable one: the same program with the same seed runs in the same order, as long as
// all wake-ups come from its own tasks.
//
// It is driven like package fifo, and like it parks its caller when nothing is runnable, so it nests.
package random

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/braidgo/braid/adapters/internal/runner"
	"github.com/braidgo/braid/adapters/internal/seeded"
	"github.com/braidgo/braid/suspend"
)

// Options are the choices that a Scheduler is made with. The zero value is the default.
type Options struct {
	// Seed determines the order, and what Select, Choose and Then choose. Zero: one that differs from time to time, which Seed tells.
	Seed uint64

	// OnPanic is called in a task that has panicked, or a callback, with the value and the stack. The task ends then, and nothing
	// else. By default the process ends, as it does when a goroutine panics. In a callback it must not suspend.
	OnPanic func(value any, stack []byte)

	// OnIdle, if not nil, is called each time that tasks are left and none of them is runnable, before Run parks its
	// caller: on the goroutine of Run, not in a task. If it suspends, it suspends the Run.
	OnIdle func()

	// StallAfter is how long a task may run without suspending or yielding. Then its stack is reported to OnStall, or
	// on standard error if that is nil, and again whenever the time has doubled. 0 means a second; negative: never.
	// In a testing/synctest bubble nothing is reported.
	StallAfter time.Duration
	OnStall    func(report []byte)
}

// A Scheduler runs tasks during one Run. It is made by New.
type Scheduler struct {
	opts Options
	core *runner.Driven
	draw seeded.Source // for the tasks

	// The rest belongs to the goroutine of Run.
	rand     *rand.Rand
	runnable []*runner.Item
}

// New returns a Scheduler on which nothing runs yet. What is submitted before Run waits for it.
func New(o Options) *Scheduler {
	for o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	s := &Scheduler{opts: o, rand: rand.New(rand.NewPCG(o.Seed, 0))}
	s.draw.Seed(o.Seed)
	s.core = runner.NewDriven(s, s.next, o.OnIdle, o.OnPanic)
	return s
}

// Run is New with the default Options, and Run.
func Run(ctx context.Context, main func(ctx context.Context) error) error {
	return New(Options{}).Run(ctx, main)
}

// Seed returns the seed that repeats what s does.
func (s *Scheduler) Seed() uint64 { return s.opts.Seed }

// Run runs main as a task, with ctx, and returns what main returned once every task has ended, those included that
// came from elsewhere. While tasks are left it runs them, on the calling goroutine, or parks its caller. ctx reaches
// main and nothing else: a Run cannot be cancelled, its tasks can.
//
// If ctx is done already, Run returns the error of the cancellation and has done nothing. A Scheduler has one
// Run: a second returns suspend.ErrClosed. If main ends by runtime.Goexit (a failing require), so does Run, once
// every other task has ended.
func (s *Scheduler) Run(ctx context.Context, main func(ctx context.Context) error) error {
	return s.core.Drive(ctx, runner.Drive{Name: "random", StallAfter: s.opts.StallAfter, OnStall: s.opts.OnStall}, main)
}

// next picks one of all that is runnable, each as likely as any other.
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

// Go has f run as a task, some time. It may be called from any goroutine, before Run and during it; when Run has
// returned, or is about to, it returns suspend.ErrClosed and f never runs.
func (s *Scheduler) Go(f func()) error { return s.core.Go(f) }

// Execute has f run as a callback, in any order; Run waits for it as for a task. f must not suspend;
// suspend.Suspend panics in it. When Run has returned, or is about to, Execute returns suspend.ErrClosed and f
// never runs.
func (s *Scheduler) Execute(f func()) error { return s.core.Execute(f) }

// Uint64 is the random source of the tasks, see Options.Seed and suspend.Rand.
func (s *Scheduler) Uint64() uint64 { return s.draw.Uint64() }

// OnIdle calls f as Options.OnIdle is called, once. Of several, one is called at a time, in order.
func (s *Scheduler) OnIdle(f func()) {
	if f == nil {
		panic("random: nil function")
	}
	s.core.OnIdle(f)
}

// Hold keeps Run from returning until release is called, see suspend.Holder.
func (s *Scheduler) Hold() (release func(), err error) { return s.core.Hold() }

// Stats returns what the scheduler says of itself.
func (s *Scheduler) Stats() suspend.Stats { return s.core.Stats() }
