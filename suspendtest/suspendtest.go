// Package suspendtest tests schedulers and primitives that are built on package suspend: a conformance kit, a model checker, and random
// programs with cancellations.
//
// The author of a scheduler writes one function that opens it, and runs
//
//	func TestConformance(t *testing.T) { suspendtest.Scheduler(t, open) }
//
// to learn whether every primitive that waits through suspend.Suspend works on its tasks. The kit also checks the promises of suspend
// itself, on those tasks, as the subtests 01 to 13:
//
//  1. block runs exactly once, on the caller, and not at all if ctx is done; a Suspend inside block panics.
//  2. Exactly one of Resume and cancellation wins, and the loser has no effect.
//  3. If Resume returned true, Suspend returns its value, even if ctx is done by then.
//  4. A cancelled Suspend returns an error that is both ctx.Err() and context.Cause(ctx).
//  5. Resume is legal at any time, from anywhere, under any lock. It does not block and does not run the waiter.
//  6. A value that block returns is the result; it dominates a cancellation, and the resumer is dead.
//  7. A panic or a Goexit in block kills the resumer and propagates.
//  8. A stale Resumer, callback or Unpark never touches a later suspension, or another task.
//  9. Any context works, even if it cannot be compared, calls back by itself, or is another for each wait.
//  10. A cancelled wait retains nothing, and a cancelled waiter cleans up after itself.
//  11. Suspend and Resume allocate nothing in steady state, where the scheduler promises that.
//  12. Plain goroutines may suspend in a testing/synctest bubble.
//  13. Code before a Resume that returns true happens before the return of Suspend. Run the kit with -race.
//
// The other subtests are named after a part of a scheduler: Go, Park, Bind, Yield, Here, Sleep, Blocking, Pull, Queue, Timers, Clock, Rand,
// Watcher, Holder, Within. Each has a scheduler to itself. A subtest that makes no step for half a minute fails, and names the event that
// it waits for. The subtests after it have three seconds each. When a check fails, tasks that hang are left behind.
//
// The author of a primitive runs small programs through Explore, which tries every order of their steps and every cancellation.
// docs/scheduler.md and docs/primitive.md show both.
package suspendtest

import (
	"context"
	"testing"
	"time"

	"github.com/braidgo/braid/suspend"
)

// Open starts a scheduler for one subtest. close is called when every task has ended or is about to, and returns when all have. Go may be
// called at any time, even after close. A scheduler that is driven by the caller of some Run is opened with Drive.
type Open func(t testing.TB) (s suspend.Spawner, close func())

// OpenExecutor starts an Executor for one subtest. close returns when every callback that was accepted has run.
type OpenExecutor func(t testing.TB) (x suspend.Executor, close func())

// An Option says that a scheduler promises more than it has to, and checks the promise.
type Option func(*options)

type options struct {
	fifo, noAllocs bool
	panics         func(t testing.TB, onPanic func(value any, stack []byte)) (suspend.Spawner, func())
	deadline       time.Duration
	late           bool // a check made no progress
	store          storeOps
	blind          func(look string) bool // see report
}

// patience is how long a check may make no progress. After the first such check the limit is a tenth, so that go test does not time out
// even if many checks hang.
func (o options) patience() time.Duration {
	if o.late {
		return o.deadline / 10
	}
	return o.deadline
}

// FIFO says that the first runnable task runs first.
func FIFO() Option { return func(o *options) { o.fifo = true } }

// NoAllocs says that suspending and resuming a task allocates nothing in steady state.
func NoAllocs() Option { return func(o *options) { o.noAllocs = true } }

// Panics says that a task may panic without the process ending: open is like Open, with a function for the
// scheduler to call in the task, or after it, with the value and the stack.
func Panics(open func(t testing.TB, onPanic func(value any, stack []byte)) (s suspend.Spawner, close func())) Option {
	return func(o *options) { o.panics = open }
}

// Scheduler checks the scheduler that open starts.
func Scheduler(t *testing.T, open Open, opts ...Option) {
	o := gather(opts)
	for _, c := range schedulerChecks {
		if c.when != nil && !c.when(o) {
			continue
		}
		e := &env{opts: o, suspend: direct}
		t.Run(c.name, func(t *testing.T) { c.on(t, e, open) })
		o.late = o.late || e.late
	}
	t.Run("12/plain-goroutines-suspend-in-a-synctest-bubble", bubble)
}

// Executor checks the Executor that open starts. FIFO is the only Option that has an effect.
func Executor(t *testing.T, open OpenExecutor, opts ...Option) {
	o := gather(opts)
	for _, c := range executorChecks {
		if c.when != nil && !c.when(o) {
			continue
		}
		e := &env{opts: o, suspend: direct}
		t.Run(c.name, func(t *testing.T) { c.onExecutor(t, e, open) })
		o.late = o.late || e.late
	}
}

func gather(opts []Option) options {
	o := options{deadline: 30 * time.Second, store: rightStore}
	for _, f := range opts {
		f(&o)
	}
	return o
}

// Drive calls run, the Run method of a scheduler that is driven by its caller, on a goroutine, with a main that waits for close. close
// returns when run has returned.
func Drive(run func(ctx context.Context, main func(ctx context.Context) error) error) (close func()) {
	started, ended := make(chan suspend.Resumer[struct{}], 1), make(chan struct{})
	go func() {
		defer func() { ended <- struct{}{} }()
		_ = run(context.Background(), func(ctx context.Context) error {
			_, err := suspend.Suspend(ctx, func(r suspend.Resumer[struct{}]) (struct{}, bool) {
				started <- r
				return struct{}{}, false
			})
			return err
		})
	}()
	return func() {
		select {
		case r := <-started:
			r.Resume(struct{}{}, nil)
			<-ended
		case <-ended:
		}
	}
}
