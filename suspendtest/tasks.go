package suspendtest

import (
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/braidgo/braid/suspend"
)

// Scheduler checks the scheduler that open starts.
func Scheduler(t *testing.T, open Open, o Options) {
	runChecks(t, schedulerChecks, o.complete(), open)
	t.Run("12/plain-goroutines-suspend-in-a-synctest-bubble", bubble)
}

var schedulerChecks = slices.Concat(contractChecks, capabilityChecks, timerChecks, []check{
	{"11/suspend-and-resume-allocate-nothing",
		"contract 11: in steady state a suspension allocates nothing.",
		func(o Options) bool { return o.NoAllocs }, noAllocs},

	{"Go/every-task-runs-once",
		"Go: nil means that f will run, once.", nil, runOnce},
	{"Go/does-not-run-the-task-inline",
		"Go must not run f before it returns: its caller may hold locks, and must not become the task of f.", nil, notInline},
	{"Go/tasks-run-in-order",
		"Go: on a FIFO scheduler tasks begin in the order in which they were started.",
		func(o Options) bool { return o.FIFO }, runInOrder},
	{"Go/refused-or-run-while-closing",
		"Go: nil means that f will run, even while the scheduler closes; an error means that f will never run.", nil, submitWhileClosing},
	{"Go/does-not-wait-for-a-busy-scheduler",
		"Go must not block: it is called under locks.", nil, submitToBusy},
	{"Go/close-waits-for-suspended-tasks",
		"close must wait for every task, even a suspended one: a Resume that returned true is a promise.", nil, closeWaits},
	{"Go/goexit-ends-one-task-only",
		"a Goexit in a task ends only that task, not the worker or the scheduler.", nil, goexitOnce},
	{"Go/panic-is-reported-and-ends-one-task-only",
		"a panic in a task is reported, and ends only that task.",
		func(o Options) bool { return o.Panics != nil }, panicOnce},

	{"Park/suspended-tasks-hold-nobody-up",
		"Park must stop only the calling task: it must release the worker, and Bind must name the task.", nil, manySuspended},
	{"Park/an-unpark-that-comes-first-counts",
		"Park: an Unpark makes one Park return, even if it comes before the Park.", nil, permit},
	{"Park/no-wake-up-is-lost",
		"Unpark must make the task runnable whenever it comes: before, while or after the task parks.", nil, pingPong},
	{"Park/each-task-has-its-own",
		"Bind: every task needs a Task of its own; otherwise Unpark wakes another task.", nil, ownTask},

	{"Bind/nil-forbids",
		"Bind(nil, f): Suspend panics while f runs, and works again afterwards, however f ended.", nil, bindNil},
	{"Bind/nests-and-restores",
		"Bind must restore what was bound before, on return and on panic.", nil, bindNests},
	{"Bind/a-goroutine-started-by-a-task-waits-by-itself",
		"a goroutine that a task starts is not the task: it blocks natively, whatever context it uses.", nil, plainGoroutine},

	{"Yield/lets-others-run",
		"Yield must let other runnable tasks run before it returns.", nil, yieldLets},
	{"Yield/gives-way-without-preemption",
		"Yield must let other tasks run at once, and not only when the runtime preempts its caller.", nil, yieldGivesWay},
	{"Here/is-the-scheduler-of-the-task",
		"Spawner must be the scheduler of the task.", nil, here},
	{"Sleep/suspends-for-as-long-or-until-cancelled",
		"Sleep lasts for the given time, or until ctx ends, and does not block other tasks.", nil, sleeps},
	{"Blocking/holds-nobody-up",
		"Blocking runs f on another goroutine, so an f that blocks does not block the scheduler.", nil, blockingHolds},
	{"Blocking/panic-and-goexit-come-back",
		"Blocking: a panic and a Goexit of f reach the task.", nil, blockingFails},
	{"Blocking/after-close",
		"Blocking: a task that still runs after Close can use it, to clean up.", nil, blockingAfterClose},
	{"Pull/the-body-suspends-the-caller-of-next",
		"Pull: a Suspend in the body suspends the task that called next.", nil, pullSuspends},
	{"Queue/cancel-storm-conserves",
		"Guard and Queue: under a storm of cancellations every value is taken exactly once.", nil, queueStorm},
})

func noAllocs(e *env) {
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	for _, ctx := range []context.Context{background, ctx} {
		var guard suspend.Guard
		var queue suspend.Queue[int, struct{}]
		var stop atomic.Bool
		wait := func() {
			_, _ = suspend.Suspend(ctx, func(r suspend.Resumer[int]) (int, bool) {
				guard.Lock()
				defer guard.Unlock()
				queue.Resume(1, nil)
				if stop.Load() {
					return 0, true
				}
				queue.Push(r, struct{}{})
				return 0, false
			})
		}
		partner := e.task(func() {
			for !stop.Load() {
				wait()
			}
		})
		e.do("two tasks that resume each other made no progress", func() {
			wait()
			wait()
			if n := allocs(func() { e.progress(); wait() }); n > 0 {
				e.errorf("a suspension allocates %d times", n)
			}
			guard.Lock()
			stop.Store(true)
			queue.ResumeAll(1, nil)
			guard.Unlock()
		})
		recv(e, partner, "a task that was resumed did not continue")
	}
}

// allocs returns the number of allocations in a call of f. allocs takes the least of several means, because other goroutines
// allocate, too. testing.AllocsPerRun would stop these goroutines, but panics in a parallel test.
func allocs(f func()) uint64 {
	const calls = 10
	var least uint64 = math.MaxUint64
	var before, after runtime.MemStats
	for range 20 {
		runtime.ReadMemStats(&before)
		for range calls {
			f()
		}
		runtime.ReadMemStats(&after)
		least = min(least, (after.Mallocs-before.Mallocs)/calls)
	}
	return least
}

func closeWaits(e *env) {
	w := e.waiter(background)
	var after, resumed atomic.Bool
	late := e.task(func() {
		for range 20 {
			e.progress()
			suspend.Yield()
		}
		after.Store(true)
	})
	closed := e.closing(func() bool { return resumed.Load() && after.Load() })
	for range 100 {
		e.progress()
		runtime.Gosched()
	}
	resumed.Store(true)
	e.finish(w)
	recv(e, late, "a task did not continue while the scheduler was closing")
	if !recv(e, closed, "close did not return although every task has ended") {
		e.errorf("close returned before a task had ended")
	}
}

func goexitOnce(e *env) {
	w := e.waiter(background)
	for range 20 {
		ran := false
		ended := e.task(func() {
			defer func() { // a deferred function may still suspend
				e.pass(background)
				ran = true
			}()
			runtime.Goexit()
		})
		recv(e, ended, "a task that called Goexit did not end")
		if !ran {
			e.errorf("the deferred calls of a task that called Goexit did not run")
		}
		e.letPark()
	}
	e.finish(w)
}

func panicOnce(e *env) {
	w := e.waiter(background)
	for range 3 {
		if err := e.spawner.Go(func() {
			e.pass(background)
			panic(errTest)
		}); err != nil {
			e.fatalf("Go refused a task: %v", err)
		}
		if v := recv(e, e.panicked, "a panic was not reported"); v != errTest {
			e.errorf("a task panicked with %v, and %v was reported", errTest, v)
		}
		e.letPark()
	}
	e.finish(w)
}

func manySuspended(e *env) {
	const n = 300
	resumes := make(chan resume, n)
	var ended []chan struct{}
	for range n {
		ended = append(ended, e.task(func() {
			_, _ = e.suspend(background, func(r resume) (*box, bool) { resumes <- r; return nil, false })
		}))
	}
	e.do("a task did not run while others were suspended", func() {})
	var all []resume
	for range n {
		all = append(all, recv(e, resumes, "a task did not suspend while others were suspended"))
	}
	e.do("a task did not run while others were suspended", func() {
		for _, r := range all {
			r(nil, nil)
		}
	})
	for _, ended := range ended {
		recv(e, ended, "a task that was resumed did not continue")
	}
}

func permit(e *env) {
	for _, elsewhere := range []bool{false, true} {
		for range 10 {
			e.do("a Park did not return although an Unpark had come first", func() {
				t := suspend.Self()
				for range 3 {
					if elsewhere {
						done := make(chan struct{})
						go func() { defer close(done); t.Unpark() }()
						<-done
					} else {
						t.Unpark()
					}
					t.Park()
				}
			})
		}
	}
}

// pingPong calls Park and Unpark directly, as fast as two tasks can, so that Unparks arrive at every point of Park.
func pingPong(e *env) {
	const rounds = 3000
	var turn atomic.Int64
	tasks := make(chan suspend.Task, 2)
	var partner [2]suspend.Task
	begin := make(chan struct{})
	var ended []chan struct{}
	for side := range int64(2) {
		self := make(chan suspend.Task, 1)
		ended = append(ended, e.task(func() {
			self <- suspend.Self()
			_, _ = e.suspend(background, func(r resume) (*box, bool) {
				go func() { <-begin; r(nil, nil) }()
				return nil, false
			})
			t := partner[side]
			for round := int64(0); round < rounds; round++ {
				for turn.Load() != 2*round+side && !e.over.Load() {
					t.Park()
				}
				e.progress()
				turn.Add(1)
				partner[1-side].Unpark()
			}
		}))
		tasks <- recv(e, self, "a task did not run")
	}
	partner[0], partner[1] = <-tasks, <-tasks
	close(begin)
	for _, ended := range ended {
		recv(e, ended, "an Unpark was lost: the task stays parked")
	}
	// Now a goroutine outside the scheduler calls Unpark, so that an Unpark can arrive in the middle of Park.
	var far atomic.Int64
	self := make(chan suspend.Task, 1)
	var acks atomic.Int64
	task := e.task(func() {
		t := suspend.Self()
		self <- t
		for round := int64(1); round <= rounds; round++ {
			for far.Load() < round && !e.over.Load() {
				t.Park()
			}
			e.progress()
			acks.Store(round)
		}
	})
	t := recv(e, self, "a task did not run")
	e.expect("an Unpark from elsewhere was lost: the task stays parked")
	for round := int64(1); round <= rounds && !e.over.Load(); round++ {
		far.Store(round)
		t.Unpark()
		for acks.Load() < round && !e.over.Load() {
			runtime.Gosched()
		}
	}
	recv(e, task, "an Unpark from elsewhere was lost: the task stays parked")
}

func ownTask(e *env) {
	const n = 5
	var mu sync.Mutex
	seen := map[suspend.Task]bool{}
	var waiters []*waiter
	for range n {
		waiters = append(waiters, e.waiter(background, func() {
			mu.Lock()
			seen[suspend.Self()] = true
			mu.Unlock()
		}))
	}
	if len(seen) != n {
		e.fatalf("%d tasks that live at the same time have %d Tasks between them", n, len(seen))
	}
	for _, w := range waiters {
		e.finish(w)
	}
}
