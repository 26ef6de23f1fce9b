// Package workstealing is a scheduler that runs tasks on several workers, and has the fork and join of computations on it: Join, Do, For
// and Reduce.
//
//	pool := workstealing.New(workstealing.Options{}) // a worker for each processor
//	defer pool.Close()
//	sum, err := workstealing.Reduce(ctx, pool, 0, len(v), 0, 0, sumOf, plus)
//
// A task may wait for any other, also in nested Joins and on one worker: a task that waits gives its worker to others. So nested
// waits do not deadlock a pool.
//
// Any Go code may run in a task. A task that waits natively, by a channel, a sync.Mutex or a file, holds its worker. If
// the wait lasts while other tasks are runnable, another worker takes over, see Options.GrowAfter.
//
// A worker runs a task until it suspends, yields or ends. A Join pushes a fork on the deque of its worker, and takes it
// back when it gets there. Other workers steal the oldest one when they have nothing else to do, which is usually the
// largest. So forks run depth first and close together. All other runnable tasks go through one queue, first in, first
// out.
//
// A task that forks gives way to that queue, in a Join, after 61 forks or some tenth of a millisecond. It goes on when the tasks that were
// queued have had their turn, and a fork is begun in its place only if nothing else is runnable, or a task waits. So a new task waits for
// about that long beside any number of long computations, which share the workers. A task that neither forks nor suspends gives way to
// nobody.
//
// For connections use adapters/eventloop. For at most n goroutines at work use adapters/limited. For independent
// goroutines that wait natively an errgroup is as good.
package workstealing

import (
	"context"
	"runtime"
	"time"

	"github.com/braidgo/braid/adapters/internal/blocking"
	"github.com/braidgo/braid/adapters/internal/closable"
	"github.com/braidgo/braid/adapters/internal/coro"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/labels"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// Options are the choices that a Pool is made with. The zero value is the default.
type Options struct {
	// Workers is the number of tasks that run in parallel; see GrowAfter for tasks that wait natively. 0 means
	// GOMAXPROCS. With 1 no two tasks ever run at the same time, unless GrowAfter is set, too.
	Workers int

	// BlockingWidth is how many functions of suspend.Blocking run concurrently at first; 0 means 64. Further functions
	// are queued. All functions that run may wait for a queued function, such as transactions for a connection. So the
	// width doubles whenever no function has ended for 100 ms and the queue is not empty, up to MaxBlocking; 0 means
	// 4096. The first growth is reported to OnStall, and so is the first time that MaxBlocking is too small. The width
	// is back at BlockingWidth when no function runs.
	BlockingWidth, MaxBlocking int

	// OnPanic is called in a task that has panicked, or a callback, with the value and the stack. The task ends then, and nothing
	// else. By default the process ends, as it does when a goroutine panics. In a callback it must not suspend.
	OnPanic func(value any, stack []byte)

	// StallAfter is how long a task may run without suspending or yielding. Then its stack is reported to OnStall, at
	// most a fortieth later, and again whenever the time has doubled. So are tasks that wait natively one after
	// another, if together they keep a runnable task waiting for as long. A nil OnStall writes to standard error;
	// otherwise it must be safe for concurrent calls. 0 means a second, but then only tasks that wait natively are
	// reported, not tasks that compute. A negative StallAfter means never. In a testing/synctest bubble nothing is
	// reported.
	StallAfter time.Duration
	OnStall    func(report []byte)

	// GrowAfter is how long a step of a task may last that waits natively. Then another worker takes its place, if work
	// waits and there are fewer than MaxWorkers. It takes up to twice as long if nothing else of the process runs. Else
	// the pool looks at all stacks, which takes longer in a process of some hundred goroutines or more. While as many
	// goroutines run as the pool has workers, it looks after ten times as long, and at most once a second. A task that
	// computes is no reason. When the task goes on, it runs beside the other tasks until it suspends, yields or ends. A
	// wait inside a coroutine that the task has made itself is not seen. 0 means 10 ms and 1000 workers; but where
	// Workers is 1, never. Negative: never. In a testing/synctest bubble the pool does not grow.
	GrowAfter  time.Duration
	MaxWorkers int
}

// A Pool runs tasks on its workers, from New to Close. It implements suspend.Spawner and suspend.Executor. All methods
// may be called from any goroutine.
type Pool struct {
	opts     Options
	workers  atomicx.Pointer[[]*worker] // replaced under mu
	injector injector
	given    injector         // fibers that have given way
	live     closable.Counter // tasks and callbacks accepted and not ended

	held atomicx.Int64 // Holds that are not released

	// wanted says that workers sleep and none searches. A producer publishes a runnable entry, then loads wanted, and calls wake
	// if it is set. See sleep for the other side.
	wanted    atomicx.Bool
	mu        atomicx.Mutex // a leaf
	idle      []*worker     // asleep; guarded by mu
	searching int           // workers that look for something to steal; guarded by mu

	growth growth

	over       atomicx.Bool  // closed, and everything has ended
	goroutines atomicx.Int64 // counts the workers that have not ended, and one for all goroutines of blocking
	blocking   *blocking.Goroutines
	gone       promise.Promise[struct{}] // no goroutine is left
}

const (
	pollEvery    = 61   // picks of a turn, at most; a prime, as in Go's own scheduler
	seldom       = 64   // turns of a fiber, until it gives way to others that have done so
	hardlyEver   = 1000 // turns, or times that a fiber with forks yields
	carried      = 1024 // forks that a fiber takes along, at most
	maxIdle      = 256  // coroutines that a worker keeps for reuse
	searchRounds = 4

	defaultGrowAfter  = 10 * time.Millisecond
	defaultMaxWorkers = 1000
)

// New returns a Pool that is running.
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
	p := &Pool{opts: o}
	p.goroutines.Store(int64(o.Workers) + 1) // the pool counts one for all goroutines of blocking
	p.blocking = blocking.New(blocking.Limits{Width: o.BlockingWidth, Max: o.MaxBlocking, Tell: coro.Reports(o.StallAfter, o.OnStall)}, p.exit)
	p.growth.start = func(w *worker) { go w.run() }
	all := p.makeWorkers(o.Workers)
	for _, w := range all {
		go w.run()
	}
	return p
}

// Go runs f as a task. When p is closed, it returns suspend.ErrClosed and f never runs.
func (p *Pool) Go(f func()) error {
	if labels.Some() {
		f = labels.Inherit(f)
	}
	return p.submit(entry{f: f})
}

// Block runs f, which may block in any way, on a goroutine that is no worker, as suspend.Blocking does for a task of p.
// Block itself never waits: f waits for its turn, see Options.BlockingWidth. A panic in f ends the process. Once
// Close has waited for all tasks, Block returns suspend.ErrClosed and f never runs.
func (p *Pool) Block(f func()) error { return p.blocking.Block(f) }

// Execute runs f as a callback: f must not suspend, suspend.Suspend panics in it. It obeys the contract of a
// Task's Unpark. When p is closed, it returns suspend.ErrClosed and f never runs.
func (p *Pool) Execute(f func()) error { return p.submit(entry{f: f, call: true}) }

func (p *Pool) submit(e entry) error {
	if e.f == nil {
		panic("workstealing: nil function")
	}
	if !p.live.Enter() { // counted before it is published
		return suspend.ErrClosed
	}
	p.enqueue(&p.injector, e)
	return nil
}

// Hold keeps Close from returning until release is called, see suspend.Holder.
func (p *Pool) Hold() (release func(), err error) {
	if !p.live.Enter() {
		return nil, suspend.ErrClosed
	}
	p.held.Add(1)
	return p.release, nil
}

func (p *Pool) release() {
	p.held.Add(-1)
	p.ended()
}

func (p *Pool) enqueue(in *injector, e entry) {
	in.push(e)
	if p.wanted.Load() {
		p.wake()
	}
}

// ended counts one task or callback less.
func (p *Pool) ended() {
	if p.live.Leave() {
		p.finish()
	}
}

// Close refuses new work from now on. It returns when every task, suspended or not, and every goroutine of p has ended.
// It suspends only its caller. Tasks may use Join and suspend.Blocking until they end. Close does not end them: cancel
// their contexts. Another Close does the same. The error is nil.
//
// Close panics in a task of p, which would wait for itself. In two places Close cannot see this, and hangs: in a task of another scheduler
// that runs inside a task of p, and in a suspend.Blocking of a task of p.
func (p *Pool) Close() error {
	if p.current() != nil {
		panic("workstealing: Close called from a task of the pool")
	}
	suspend.Self() // panics in a callback, before anything is closed
	if _, last := p.live.Close(); last {
		p.finish()
	}
	_, _ = p.gone.Await(context.Background())
	return nil
}

// finish ends the workers. It is called once, when p is closed and everything has ended.
func (p *Pool) finish() {
	p.blocking.Close()
	p.over.Store(true) // before idle is read: pairs with the load in sleep
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	for _, w := range idle {
		w.asleep = false
	}
	p.wanted.Store(false)
	p.mu.Unlock()
	for _, w := range idle {
		w.thread.Unpark()
	}
}

// exit counts one goroutine less. The goroutine does nothing after it.
func (p *Pool) exit() {
	if p.goroutines.Add(-1) == 0 {
		p.gone.Fill(struct{}{})
	}
}

// Stats returns the statistics of p. Stolen forks are not counted as tasks.
func (p *Pool) Stats() suspend.Stats {
	s := suspend.Stats{Suspended: p.held.Load()}
	p.mu.Lock()
	all := *p.workers.Load()
	s.Running = int64(len(all) - len(p.idle) - p.searching)
	for _, w := range all { // under the lock: a worker that ends leaves its counts to another
		s.Suspended += w.suspended.Load()
		s.Wakes += w.wakes.Load()
		s.Steals += w.steals.Load()
	}
	p.mu.Unlock()
	s.Live = p.live.Live()
	s.Suspended = max(0, min(s.Suspended, s.Live))
	s.Running = max(0, min(s.Running, s.Live-s.Suspended))
	s.Blocking, s.BlockingQueued = p.blocking.Counts()
	return s
}

// current returns the fiber that the caller runs on, nil if the caller is not a task of p.
func (p *Pool) current() *fiber {
	if s, ok := suspend.Current().(*fiber); ok && s.pool == p {
		return s
	}
	return nil
}
