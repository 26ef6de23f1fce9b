// Package limited provides a scheduler whose tasks are goroutines, of which at most n run in parallel. When a task
// suspends, another task runs, so a thousand tasks may wait while ten compute.
//
//	s := limited.New(10, limited.Options{})
//	defer s.Close()
//	for _, job := range jobs {
//		_ = s.Go(func() { work(ctx, job) }) // a task that waits in Braid does not count
//	}
//
// Each task runs on a new goroutine, or on a goroutine of an existing pool (Options.Submit). A task that blocks natively
// keeps its place among the n; suspend.Blocking gives up the place while its function runs.
//
// There is no option StallAfter. On other schedulers a native wait is a mistake, because it delays tasks that could run.
// Here a native wait may be intended, as in any pool of goroutines, so that many reports would be false.
//
// scope.Limit also counts suspended tasks, and needs no special scheduler. For divide-and-conquer computations use
// adapters/workstealing.
package limited

import (
	"context"
	"runtime"
	"runtime/debug"

	"github.com/braidgo/braid/adapters/internal/closable"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/labels"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

// Options configure a Scheduler. The zero Options are the defaults.
type Options struct {
	// Submit starts f on a goroutine of a pool. It must neither block nor run f before it returns; if a call of the pool
	// might do either, Submit must make this call on a new goroutine. If the pool refuses f, Submit must run f on a new
	// goroutine; otherwise f would keep its place among the n, and Close would wait for it. A suspended task keeps its
	// goroutine, so a pool stops making progress when suspended tasks occupy all its goroutines. If Submit is nil, each
	// task runs on a new goroutine.
	Submit func(f func())

	// OnPanic is called in a task or callback that has panicked, with the value and the stack of the panic. Only this task
	// or callback ends. If OnPanic is nil, the panic propagates to the pool of Submit, or ends the process. In a callback
	// OnPanic must not suspend.
	OnPanic func(value any, stack []byte)
}

// errClosed is the error of work that a closed Scheduler refuses.
var errClosed = outcome.Named("limited: closed", suspend.ErrClosed)

// A Scheduler runs tasks until it is closed. It implements suspend.Spawner, suspend.Executor and sched.Holder. All
// methods may be called from any goroutine.
type Scheduler struct {
	n    int
	opts Options
	gone promise.Promise[struct{}] // filled when the Scheduler is closed and all work has ended

	// Invariant: the field running equals n, or the queue is empty. Debt: a goroutine that takes an item off the queue
	// must run the item.
	mu        atomicx.Mutex // no other lock is acquired while mu is held
	queue     []item        // the runnable items, in order
	running   int
	live      int // tasks and callbacks that have not ended, and Holds that have not been released
	suspended int // tasks that are suspended or queued to continue, and unreleased Holds
	wakes     uint64
	closed    bool
}

// An item is a task to continue, or a function to start.
type item struct {
	t    *task
	f    func()
	call bool // f is a callback
}

// New returns a Scheduler that runs at most n tasks in parallel. It panics if n is less than 1.
func New(n int, o Options) *Scheduler {
	if n < 1 {
		panic("limited: New with less than one task")
	}
	if o.Submit == nil {
		o.Submit = func(f func()) { go f() }
	}
	return &Scheduler{n: n, opts: o}
}

// Go queues f to run as a task. After Close, Go returns an error that wraps suspend.ErrClosed, and f never runs.
func (s *Scheduler) Go(f func()) error { return s.accept(item{f: labels.Inherit(f)}) }

// Execute queues f to run as a callback, in order with the tasks. f must not suspend; suspend.Suspend panics if it does.
// After Close, Execute returns an error that wraps suspend.ErrClosed, and f never runs.
func (s *Scheduler) Execute(f func()) error { return s.accept(item{f: f, call: true}) }

func (s *Scheduler) accept(it item) error {
	if it.f == nil {
		panic("limited: nil function")
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errClosed
	}
	s.live++
	s.queue = append(s.queue, it)
	s.unlockAndRun()
	return nil
}

// unlockAndRun unlocks s.mu, and runs the first item of the queue if fewer than n tasks run. The caller must hold s.mu.
func (s *Scheduler) unlockAndRun() {
	var it item
	ok := s.running < s.n && len(s.queue) > 0
	if ok {
		it, s.queue[0] = s.queue[0], item{}
		s.queue = s.queue[1:]
		s.running++
		if it.t != nil {
			s.suspended--
		}
	}
	s.mu.Unlock()
	switch {
	case !ok:
	case it.t != nil:
		it.t.turn <- struct{}{}
	default:
		s.opts.Submit(func() { s.run(it) })
	}
}

// run runs a task or a callback to its end, on the goroutine that Submit has provided.
func (s *Scheduler) run(it item) {
	defer s.ended()           // runs even after a Goexit
	defer labels.Here().Put() // the goroutine may belong to a pool
	labels.Clear()            // a new goroutine has the labels of its creator
	var t suspend.Task
	if !it.call {
		t = &task{Scheduler: s, turn: make(chan struct{}, 1)}
	}
	suspend.Bind(t, func() {
		if s.opts.OnPanic != nil {
			defer func() {
				if v := recover(); v != nil {
					s.opts.OnPanic(v, debug.Stack())
				}
			}()
		}
		it.f()
	})
}

func (s *Scheduler) ended() {
	s.mu.Lock()
	s.running--
	s.unlockAndEnd()
}

// unlockAndEnd decrements s.live, unlocks s.mu, and runs the next item. The caller must hold s.mu.
func (s *Scheduler) unlockAndEnd() {
	s.live--
	over := s.closed && s.live == 0
	s.unlockAndRun()
	if over {
		s.gone.Fill(struct{}{})
	}
}

// Hold keeps Close from returning until release is called; see sched.Holder.
func (s *Scheduler) Hold() (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	s.live++
	s.suspended++
	return func() {
		s.mu.Lock()
		s.suspended--
		s.unlockAndEnd()
	}, nil
}

// Close makes the Scheduler refuse new work, and suspends its caller until every task and callback has ended. This wait
// cannot be cancelled. A second Close waits in the same way. The error is always nil. Close panics in a task of s.
func (s *Scheduler) Close() error {
	return s.closeUntil(context.Background(), "limited: Close called from a task of the scheduler")
}

// Shutdown is Close with a limit: if ctx ends before every task and callback has ended, Shutdown returns the cancellation
// error. s is closed then, but its tasks run on, because a scheduler cannot end a task. A later Close or Shutdown
// continues the wait. If ctx has already ended, Shutdown closes s and does not wait. Shutdown
// returns nil if nothing is left, even if ctx has ended. Shutdown panics in a task of s.
//
// Tasks of s cannot start tasks there after a Close or Shutdown: a scope.Map on suspend.Here() fails, and a continuation of
// suspend.Then whose result comes later runs on a goroutine of its own. So shut down listeners and stages first, and s last.
func (s *Scheduler) Shutdown(ctx context.Context) error {
	return s.closeUntil(ctx, "limited: Shutdown called from a task of the scheduler")
}

func (s *Scheduler) closeUntil(ctx context.Context, inTask string) error {
	if suspend.Within(s) {
		panic(inTask)
	}
	suspend.Self() // Self panics in a callback, before s is closed
	s.mu.Lock()
	over := !s.closed && s.live == 0
	s.closed = true
	s.mu.Unlock()
	if over {
		s.gone.Fill(struct{}{})
	}
	return closable.Wait(ctx, &s.gone)
}

// Stats returns the statistics of the scheduler.
func (s *Scheduler) Stats() sched.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sched.Stats{Live: int64(s.live), Running: int64(s.running), Suspended: int64(s.suspended), Wakes: s.wakes}
}

// A task is a goroutine that may run only while it has a turn. The scheduler's mu protects its state. -T> is a call by the
// task, -U> of Unpark, and -S> a step of the scheduler:
//
//	running -T> parked   the turn passes to the next item
//	parked  -U> queued   by an Unpark
//	queued  -S> running  the task gets a turn
//	running -U> woken    the next Park returns at once
type task struct {
	*Scheduler
	turn          chan struct{} // has a buffer of one
	parked, woken bool
}

// Park implements suspend.Task.
func (t *task) Park() {
	t.mu.Lock()
	if t.woken {
		t.woken = false
		t.mu.Unlock()
		return
	}
	t.parked = true
	t.suspended++
	t.running--
	t.unlockAndRun()
	<-t.turn
}

// Unpark implements suspend.Task.
func (t *task) Unpark() {
	t.mu.Lock()
	if !t.parked {
		t.woken = true
		t.mu.Unlock()
		return
	}
	t.parked = false
	t.wakes++
	t.queue = append(t.queue, item{t: t})
	t.unlockAndRun()
}

// Yield lets other tasks run: tasks that have a turn and wait for a processor, and queued tasks that wait for a turn.
func (t *task) Yield() {
	runtime.Gosched()
	t.mu.Lock()
	if len(t.queue) == 0 {
		t.mu.Unlock()
		return
	}
	t.queue = append(t.queue, item{t: t})
	t.suspended++
	t.running--
	t.unlockAndRun()
	<-t.turn
}

// Spawner returns the scheduler.
func (t *task) Spawner() suspend.Spawner { return t.Scheduler }
