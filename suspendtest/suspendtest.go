// Package suspendtest tests schedulers and primitives that are built on package suspend. The package has a conformance kit, a
// model checker, and a generator of random programs with cancellations.
//
// The author of a scheduler writes a function, open, that starts the scheduler, and runs
//
//	func TestConformance(t *testing.T) { suspendtest.Scheduler(t, open, suspendtest.Options{}) }
//
// to check that every primitive that waits through suspend.Suspend works in the scheduler's tasks. The subtests 01 to 13 check
// the contracts of package suspend itself in these tasks:
//
//  1. block runs exactly once, on the calling goroutine, or not at all if ctx is already done. A Suspend inside block panics.
//  2. Exactly one of Resume and cancellation wins, and the loser has no effect.
//  3. If Resume returned true, Suspend returns the delivered value, even if ctx has ended by then.
//  4. A cancelled Suspend returns an error that matches both ctx.Err() and context.Cause(ctx) under errors.Is.
//  5. Resume is legal at any time, from anywhere, under any lock. Resume does not block and does not run the waiter.
//  6. A value that block returns is the result, even after a cancellation, and the Resumer has no effect any more.
//  7. A panic or a Goexit in block propagates, and the Resumer has no effect any more.
//  8. A stale Resumer, callback or Unpark never affects a later suspension or another task.
//  9. Any context works, even if it is not comparable, if it calls its callbacks itself, or if each wait uses a different
//     context.
//  10. A cancelled wait retains nothing, and a cancelled waiter cleans up after itself.
//  11. Suspend and Resume do not allocate in steady state, if the scheduler promises this.
//  12. Plain goroutines may suspend in a testing/synctest bubble.
//  13. A Resume that returns true synchronizes before the return of Suspend. Run the kit with -race to check this.
//
// The other subtests are named after the parts of a scheduler: Go, Park, Bind, Yield, Here, Sleep, Blocking, Pull, Queue,
// Timers, Clock, Rand, Watcher, Holder, Within. Each subtest opens a new scheduler. A subtest that makes no progress for half a
// minute fails and names the event that it waits for. Each subtest after such a failure has only three seconds. A failed
// subtest may leave hanging tasks behind.
//
// The author of a primitive runs small programs through Explore, which tries every order of their steps and every cancellation.
// The tutorials docs/scheduler.md and docs/primitive.md show both uses.
package suspendtest

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/braidgo/braid/suspend"
)

// Open starts a scheduler for one subtest. The kit calls close when every task has ended or is about to end; close must return
// when all tasks have ended. The kit may call Go at any time, even after close. If the scheduler runs on the caller of its Run
// method, Open can use Drive.
type Open func(t testing.TB) (s suspend.Spawner, close func())

// Options declare which optional promises a scheduler makes. The kit then checks these promises. The zero value declares none.
type Options struct {
	// FIFO declares that tasks run in the order in which they become runnable.
	FIFO bool

	// NoAllocs declares that suspending and resuming a task does not allocate in steady state.
	NoAllocs bool

	// Panics declares that a panic in a task does not end the process, if it is not nil. The function is like Open, but receives
	// another function, onPanic. After a panic, the scheduler must call onPanic with the value and the stack, in the task or after
	// its end.
	Panics func(t testing.TB, onPanic func(value any, stack []byte)) (s suspend.Spawner, close func())

	deadline time.Duration
	late     bool // an earlier check made no progress
	store    storeOps
	blind    func(look string) bool // disables assertions, see env.report
}

// patience returns how long a check may make no progress. After the first check without progress, the limit is a tenth of the
// usual limit, so that go test does not time out even if many checks hang.
func (o Options) patience() time.Duration {
	if o.late {
		return o.deadline / 10
	}
	return o.deadline
}

// complete sets the unexported fields that are not set.
func (o Options) complete() Options {
	o.deadline = cmp.Or(o.deadline, 30*time.Second)
	if o.store.Put == nil {
		o.store = rightStore
	}
	return o
}

// Drive calls run on a new goroutine, with a main function that waits until close is called. The function run is the Run method
// of a scheduler that runs on its caller's goroutine. close returns when run has returned.
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
