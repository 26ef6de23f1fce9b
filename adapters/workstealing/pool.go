// Package workstealing provides a scheduler that runs tasks on several workers, and fork-join functions that run on it:
// Join, Do, For and Reduce.
//
//	pool := workstealing.New(workstealing.Options{}) // a worker for each processor
//	defer pool.Close()
//	sum, err := workstealing.Reduce(ctx, pool, 0, len(v), 0, 0, sumOf, plus)
//
// A task that suspends frees its worker for other tasks. So a task may wait for any other task without a deadlock, even
// inside nested Joins and on a pool of one worker.
//
// Any Go code may run in a task. A task that waits natively, for example on a channel, a sync.Mutex or a file, blocks
// its worker. If other tasks are runnable during a long native wait, another worker takes over; see Options.GrowAfter.
// adapters/eventloop/README.md says what a task with a locked thread costs.
//
// A worker runs a task until the task suspends, yields or ends. Join pushes its second function as a fork onto the
// worker's deque, and takes the fork back when the first function has returned. Idle workers steal the oldest fork,
// which is usually the largest, from another worker's deque. So each worker runs its forks depth first, and related
// forks tend to run on the same worker. All other runnable tasks go through one first-in, first-out queue.
//
// If more than four workers can run in parallel when the pool is made (the smaller of Options.Workers and GOMAXPROCS), each
// worker also has a short first-in, first-out queue. It holds tasks that the worker's tasks have started or woken in short
// steps, at most about a tenth of a millisecond of work. Workers without work steal from it. The tasks join the common
// queue at the end of a turn if other tasks wait there, and after about a millisecond, or more in a pool of many workers,
// if their worker is in a long step, for example in a native wait for a task that it has just started.
// Tasks that goroutines outside the pool start or wake are in sixteen such queues, from which workers take single tasks. The tasks of one
// goroutine stay in order, and they join the common queue at the beginning of a turn if a worker has other tasks.
//
// After 61 forks, or about a tenth of a millisecond, a Join gives way to the tasks in the common queue. Its task resumes when
// they have had their turn. A worker begins a fork in place of the task only if nothing else is runnable, or if a task
// is waiting for its forks. So a new task waits for about a tenth of a millisecond, however many long computations
// share the workers. A task that neither forks nor suspends never gives way.
//
// For network connections use adapters/eventloop. For a limit on concurrently running goroutines use adapters/limited.
// For independent goroutines that wait natively, an errgroup is as good.
package workstealing

import (
	"context"
	"runtime"
	"time"

	"github.com/braidgo/braid/adapters/internal/blocking"
	"github.com/braidgo/braid/adapters/internal/closable"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/coro"
	"github.com/braidgo/braid/internal/labels"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

// Options configures a Pool. The zero value selects the defaults.
type Options struct {
	// Workers is the number of tasks that run in parallel; see GrowAfter for tasks that wait natively. 0 means
	// GOMAXPROCS. With 1, no two tasks ever run at the same time, unless GrowAfter is set, too.
	Workers int

	// BlockingWidth is how many suspend.Blocking functions may run concurrently at first; 0 means 64. Further functions
	// are queued. All running functions may be waiting for a queued function, for example transactions that wait for a
	// connection. So the width doubles, up to MaxBlocking, whenever no function has ended for 100 ms and the queue is
	// not empty. A MaxBlocking of 0 means 4096. The pool reports the first growth to OnStall, and also the first time
	// that MaxBlocking is too small. The width returns to BlockingWidth when no function is running.
	BlockingWidth, MaxBlocking int

	// OnPanic is called in a task or callback that has panicked, with the panic value and the stack. Only that task or
	// callback ends. If OnPanic is nil, the process ends, as it does when a goroutine panics. OnPanic must not suspend
	// if a callback has panicked.
	OnPanic func(value any, stack []byte)

	// StallAfter is how long a task may run without suspending or yielding. The pool reports the stack of a task that
	// runs longer to OnStall, at most a fortieth of StallAfter late, and again each time the task's time has doubled. The pool also
	// reports tasks that wait natively one after another, if together they delay a runnable task for as long. If
	// OnStall is nil, reports are written to standard error; otherwise OnStall must be safe for concurrent use. 0 means
	// one second, but then only tasks that wait natively are reported, not tasks that compute. A negative StallAfter
	// disables the reports. Nothing is reported in a testing/synctest bubble. On a busy machine a report may come later.
	StallAfter time.Duration
	OnStall    func(report []byte)

	// GrowAfter is how long a task that waits natively may hold its worker before another worker takes over. The pool
	// grows only if a task or fork is runnable, and up to MaxWorkers. Growing takes up to twice as long as GrowAfter if
	// no other goroutine of the process runs. Otherwise the pool inspects the stacks of all goroutines, which takes
	// longer in a process with several hundred goroutines or more. While at least as many goroutines run as the pool
	// has workers, it inspects the stacks only after ten times GrowAfter, and at most once a second. The pool does not
	// grow for a task that computes. After its wait, the task runs alongside the other tasks until it suspends, yields or
	// ends. A wait inside a coroutine that the task has created itself is not detected. 0 means 10 ms, or no growth if
	// Workers is 1. A negative GrowAfter disables growth. A MaxWorkers of 0 means 1000. In a testing/synctest bubble
	// the pool does not grow.
	GrowAfter  time.Duration
	MaxWorkers int
}

// errClosed is the error of work that a closed Pool refuses.
var errClosed = outcome.Named("workstealing: closed", suspend.ErrClosed)

// A Pool runs tasks on its workers, from New to Close. It implements suspend.Spawner and suspend.Executor. All methods
// are safe for concurrent use.
type Pool struct {
	opts    Options
	workers atomicx.Pointer[[]*worker] // replaced only with mu held
	queues  bool                       // each worker has a queue, see worker.takes
	shards  []shard                    // the entries from outside, if workers have queues
	crowd   int64                      // the number of entries in the injector beside which queues are not used
	live    *closable.Parts            // counts the tasks, callbacks and Holds that have not ended: a part for each shard, then one for each worker

	_        [64]byte // all workers write the fields below, and only read those above
	injector injector
	given    injector // holds the fibers that carry their forks; see class
	_        [64]byte

	held atomicx.Int64 // counts the Holds that have not been released

	// wanted is true while workers sleep and none searches. A producer publishes a runnable entry, then loads this
	// flag, and calls p.wake if it is true. See worker.
	wanted atomicx.Bool
	mu     atomicx.Mutex // a leaf in the lock order
	growth growth

	drops      atomicx.Bool  // the timer of a drop is set, see keep
	coroutines atomicx.Int64 // counts the fibers whose coroutines have not ended

	over       atomicx.Bool  // set when the pool is closed and all tasks have ended
	goroutines atomicx.Int64 // counts the workers that have not ended, plus 1 for all goroutines of p.blocking together
	blocking   *blocking.Goroutines
	gone       promise.Promise[struct{}] // filled when the last goroutine of the pool ends
}

const (
	pollEvery    = 61   // the maximum number of picks in a turn; a prime, as in Go's scheduler
	seldom       = 64   // turns after which a fiber gives way to other fibers with forks
	hardlyEver   = 1000 // turns of a worker, or yields of a fiber, after which a fork may run
	carried      = 1024 // the maximum number of forks that a fiber carries
	searchRounds = 4
	fewWorkers   = 4 // while no more workers run in parallel, the injector alone takes less time than queues

	defaultGrowAfter  = 10 * time.Millisecond
	defaultMaxWorkers = 1000
)

// New returns a running Pool.
func New(o Options) *Pool {
	if o.GrowAfter == 0 && o.Workers != 1 {
		o.GrowAfter = defaultGrowAfter
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.MaxWorkers <= 0 {
		o.MaxWorkers = defaultMaxWorkers
	}
	p := newPool(o, min(o.Workers, runtime.GOMAXPROCS(0)) > fewWorkers && !coro.InBubble())
	p.goroutines.Store(int64(o.Workers) + 1) // the goroutines of p.blocking count as one
	p.blocking = blocking.New(blocking.Limits{Width: o.BlockingWidth, Max: o.MaxBlocking, Closed: errClosed, Tell: coro.Reports(o.StallAfter, o.OnStall)}, p.exit)
	p.growth.start = func(w *worker) { go w.run() }
	all := p.makeWorkers(o.Workers)
	for _, w := range all {
		go w.run()
	}
	return p
}

// newPool returns a Pool without workers.
func newPool(o Options, queues bool) *Pool {
	p := &Pool{opts: o, queues: queues}
	parts := 1
	if p.queues {
		p.shards = make([]shard, numShards)
		parts = numShards + o.Workers
	}
	p.live = closable.NewParts(parts)
	p.crowd = int64(pollEvery * o.Workers)
	return p
}

// Go runs f as a task. If p is closed, Go returns an error that wraps suspend.ErrClosed, and f never runs.
func (p *Pool) Go(f func()) error {
	if labels.Some() {
		f = labels.Inherit(f)
	}
	return p.submit(entry{f: f})
}

// Block runs f, which may block in any way, on a goroutine that is not a worker, as suspend.Blocking does for a task of
// p. Block returns without waiting for f, which may be queued; see Options.BlockingWidth. A panic in f ends the
// process. When p is closed and all tasks have ended, Block returns an error that wraps suspend.ErrClosed, and f never runs.
func (p *Pool) Block(f func()) error { return p.blocking.Block(f) }

// Execute runs f as a callback. f must not suspend: suspend.Suspend panics in a callback. Execute obeys the contract of
// suspend.Task's Unpark. If p is closed, Execute returns an error that wraps suspend.ErrClosed, and f never runs.
func (p *Pool) Execute(f func()) error { return p.submit(entry{f: f, call: true}) }

func (p *Pool) submit(e entry) error {
	if e.f == nil {
		panic("workstealing: nil function")
	}
	w := p.here()
	in, part := p.place(w)
	if !p.live.Enter(part) { // the entry is counted before it is published
		return errClosed
	}
	if w == nil || !w.takes(e) {
		in.push(e)
	}
	p.announce()
	return nil
}

// Hold keeps Close from returning until release is called; see sched.Holder.
func (p *Pool) Hold() (release func(), err error) {
	if !p.live.Enter(0) {
		return nil, errClosed
	}
	p.held.Add(1)
	return p.releaseHold, nil
}

func (p *Pool) releaseHold() {
	p.held.Add(-1)
	p.ended(0)
}

// here returns the worker that runs the calling task. It returns nil if the caller is not a task of p, or if the workers
// of p have no queues.
func (p *Pool) here() *worker {
	if !p.queues {
		return nil
	}
	if s := p.current(); s != nil {
		return s.worker
	}
	return nil
}

// enqueue makes e runnable: in the queue of the caller's worker, or else in the common queue.
func (p *Pool) enqueue(e entry) {
	if !p.queues { // nothing to look for
		p.injector.push(e)
	} else if w := p.here(); w == nil || !w.takes(e) {
		in, _ := p.place(w)
		in.push(e)
	}
	p.announce()
}

// announce wakes a worker, if one is wanted, for what the caller has just published. See Pool.wanted.
func (p *Pool) announce() {
	if p.wanted.Load() {
		p.wake()
	}
}

// ended decrements p.live, and ends the workers if nothing is left in a closed pool.
func (p *Pool) ended(part uint) {
	if p.live.Leave(part) {
		p.finish()
	}
}

// Close makes p refuse new work. It returns when every task, suspended or not, and every goroutine of p has ended. Only
// the caller of Close is suspended. Tasks may use Join and suspend.Blocking until they end. Close does not end tasks;
// cancel their contexts to end them. Further calls to Close wait in the same way. The error is always nil.
//
// Close panics in a task of p, because that task would wait for itself. Close cannot detect this in two places, and
// hangs there: in a task of another scheduler that runs inside a task of p, and in a suspend.Blocking function of a
// task of p.
func (p *Pool) Close() error {
	return p.closeUntil(context.Background(), "workstealing: Close called from a task of the pool")
}

// Shutdown is Close with a limit: if ctx ends before every task and goroutine of p has ended, Shutdown returns the
// cancellation error. p is closed then, but its tasks run on, because a scheduler cannot end a task. A later Close or
// Shutdown continues the wait. If ctx has already ended, Shutdown closes p and does not wait. Once p has ended, Shutdown
// returns nil even if ctx has ended; but the workers of a p without tasks need a moment to end. Like Close, it panics in a task
// of p.
//
// Tasks of p cannot start tasks there after a Close or Shutdown: a scope.Map on suspend.Here() fails, and a continuation of
// suspend.Then whose result comes later runs on a goroutine of its own. So shut down listeners and stages first, and p last.
func (p *Pool) Shutdown(ctx context.Context) error {
	return p.closeUntil(ctx, "workstealing: Shutdown called from a task of the pool")
}

func (p *Pool) closeUntil(ctx context.Context, inTask string) error {
	if p.current() != nil {
		panic(inTask)
	}
	suspend.Self() // Self panics in a callback, before anything is closed
	if p.live.Close() {
		p.finish()
	}
	return closable.Wait(ctx, &p.gone)
}

// finish ends the workers. It is called once, when p is closed and all tasks have ended.
func (p *Pool) finish() {
	p.blocking.Close()
	p.over.Store(true) // stored before the modes are read; pairs with the load in worker.sleep
	for _, w := range *p.workers.Load() {
		w.wakeTo(awake)
	}
}

// exit decrements p.goroutines. It is the last call of each goroutine.
func (p *Pool) exit() {
	if p.goroutines.Add(-1) == 0 {
		p.gone.Fill(struct{}{})
	}
}

// Stats returns the statistics of p. Stolen forks do not count as tasks.
func (p *Pool) Stats() sched.Stats {
	s := sched.Stats{Suspended: p.held.Load()}
	p.mu.Lock()
	all := *p.workers.Load()
	search, sleep := p.modes()
	s.Running = int64(len(all) - search - sleep)
	for _, w := range all { // the lock is held because a worker that ends moves its counts to another worker
		s.Suspended += w.suspended.Load()
		s.Wakes += w.wakes.Load()
		s.Steals += w.steals.Load()
	}
	p.mu.Unlock()
	s.Suspended = max(0, s.Suspended)
	s.Live = max(p.live.Live(), s.Suspended) // tasks that come and go meanwhile may be missing in Live
	s.Running = max(0, min(s.Running, s.Live-s.Suspended))
	s.Coroutines = p.coroutines.Load()
	s.Blocking, s.BlockingQueued = p.blocking.Counts()
	return s
}

// current returns the fiber that the caller runs on, or nil if the caller is not a task of p.
func (p *Pool) current() *fiber {
	if s, ok := suspend.Current().(*fiber); ok && s.pool == p {
		return s
	}
	return nil
}
