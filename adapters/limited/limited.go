// Package limited is a scheduler whose tasks are goroutines, of which at most n run. A task that suspends lets another
// one run, so a thousand may wait while ten compute.
//
//	s := limited.New(10, limited.Options{})
//	defer s.Close()
//	for _, job := range jobs {
//		_ = s.Go(func() { work(ctx, job) }) // waits for locks, promises and channels of Braid do not count
//	}
//
// The goroutines are new, or belong to a pool that is there already (Options.Submit). A task that blocks natively keeps
// its place among the n; suspend.Blocking gives up the place while its function runs.
//
// There is no StallAfter. On the other schedulers a native wait holds up tasks that could run, and is a mistake. Here it may be the job of the
// task, as in any pool of goroutines, and a report would be wrong as often as right.
//
// scope.Limit also counts suspended tasks, and needs no scheduler. For computation that divides use
// adapters/workstealing.
package limited

import (
	"context"
	"runtime"
	"runtime/debug"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/labels"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// Options are the choices that a Scheduler is made with. The zero value is the default.
type Options struct {
	// Submit starts f on a goroutine of a pool. It must neither block nor run f before it returns: for a pool that may
	// do so, call it from a new goroutine. Where the pool refuses f, start a goroutine: an f that does not run keeps its
	// place among the n, and Close waits for it. A suspended task keeps its goroutine, so a pool of fewer goroutines than
	// there are suspended tasks comes to a halt. By default each task has a new goroutine.
	Submit func(f func())

	// OnPanic is called in a task or a callback that has panicked, with the value and the stack. The task ends then, and
	// nothing else. By default the panic goes on to the pool of Submit, or ends the process. In a callback OnPanic must
	// not suspend.
	OnPanic func(value any, stack []byte)
}

// A Scheduler runs tasks from New to Close. It implements suspend.Spawner, suspend.Executor and suspend.Holder. All
// methods may be called from any goroutine.
type Scheduler struct {
	n    int
	opts Options
	gone promise.Promise[struct{}] // closed, and everything has ended

	// Invariant: running is n, or queue is empty.
	// Debt: a goroutine that takes an item off the queue runs it.
	mu        atomicx.Mutex // a leaf
	queue     []item        // runnable, in order
	running   int
	live      int // accepted and not ended
	suspended int // tasks that are suspended, or queued to go on
	wakes     uint64
	closed    bool
}

// An item is a task to go on, or a function to begin.
type item struct {
	t    *task
	f    func()
	call bool // f is a callback
}

// New returns a Scheduler that runs at most n tasks in parallel. It panics if n is less than 1.
func New(n int, o Options) *Scheduler {
	if n < 1 {
		panic("limited: no task may run")
	}
	if o.Submit == nil {
		o.Submit = func(f func()) { go f() }
	}
	return &Scheduler{n: n, opts: o}
}

// Go runs f as a task when its turn comes. After Close it returns suspend.ErrClosed and f never runs.
func (s *Scheduler) Go(f func()) error { return s.accept(item{f: labels.Inherit(f)}) }

// Execute runs f as a callback, in the same order as tasks: f must not suspend, suspend.Suspend panics in it. After
// Close it returns suspend.ErrClosed and f never runs.
func (s *Scheduler) Execute(f func()) error { return s.accept(item{f: f, call: true}) }

func (s *Scheduler) accept(it item) error {
	if it.f == nil {
		panic("limited: nil function")
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return suspend.ErrClosed
	}
	s.live++
	s.queue = append(s.queue, it)
	s.unlockAndRun()
	return nil
}

// unlockAndRun runs the first of the queue if there is room for it. s.mu is held.
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

// run runs a task or a callback to its end, on the goroutine that it was submitted to.
func (s *Scheduler) run(it item) {
	defer s.ended()           // runs even after a Goexit
	defer labels.Here().Put() // the goroutine may be a pool's
	labels.Clear()            // a goroutine begins with the labels of its maker
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

// unlockAndEnd counts one less, and runs the next. s.mu is held.
func (s *Scheduler) unlockAndEnd() {
	s.live--
	over := s.closed && s.live == 0
	s.unlockAndRun()
	if over {
		s.gone.Fill(struct{}{})
	}
}

// Hold keeps Close from returning until release is called, see suspend.Holder.
func (s *Scheduler) Hold() (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, suspend.ErrClosed
	}
	s.live++
	s.suspended++
	return func() {
		s.mu.Lock()
		s.suspended--
		s.unlockAndEnd()
	}, nil
}

// Close refuses new work from now on, and returns when every task and callback has ended. It suspends only its caller,
// and is not cancelled. It panics in a task of s.
func (s *Scheduler) Close() error {
	if suspend.Within(s) {
		panic("limited: Close called from a task of the scheduler")
	}
	suspend.Self() // panics in a callback, before anything is closed
	s.mu.Lock()
	over := !s.closed && s.live == 0
	s.closed = true
	s.mu.Unlock()
	if over {
		s.gone.Fill(struct{}{})
	}
	_, err := s.gone.Await(context.Background())
	return err
}

// Stats returns the statistics of the scheduler.
func (s *Scheduler) Stats() suspend.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return suspend.Stats{Live: int64(s.live), Running: int64(s.running), Suspended: int64(s.suspended), Wakes: s.wakes}
}

// A task is a goroutine that may run only when it has a turn. Its state is guarded by the scheduler's mu.
//
//	running -T> parked   it gives its turn to the next
//	parked  -U> queued   by an Unpark
//	queued  -S> running  it gets a turn
//	running -U> woken    the permit: the next Park returns at once
type task struct {
	*Scheduler
	turn          chan struct{} // has room for one
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

// Yield lets the other tasks run. Some have a turn and wait for a processor, and the queue waits for a turn.
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
