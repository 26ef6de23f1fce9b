// Package census shows which tasks wait for each other, and why a program makes no progress. A goroutine dump of a
// hanging program contains the stack of each suspended task. It does not show for which object a task waits, since when
// it waits, or which task holds the object. Package census shows all of this:
//
//	defer census.Start(census.Options{})()
//	http.Handle("/debug/braid/", census.Handler())
//
// While the census is on, Take returns all live tasks. For each wait it returns the object, its holders, the start
// time, and the line of the program. It reports cycles of tasks that wait for each other as deadlocks, even across
// schedulers. Handler serves the census as a page, as text and as JSON:
//
//	deadlock: 2 tasks wait for each other; a context may end it
//	  goroutine 19 (fifo) waits for mutex.Mutex "current": mutex.Mutex.LockContext at census_test.Example.func1 (census/example_test.go:37), 1.2s
//	    goroutine 21 (workstealing) has held it for 1.2s: taken at census_test.Example.func1 (census/example_test.go:31)
//	  goroutine 21 (workstealing) waits for mutex.Mutex "savings": mutex.Mutex.LockContext at census_test.Example.func1 (census/example_test.go:37), 1.2s
//	    goroutine 19 (fifo) has held it for 1.2s: taken at census_test.Example.func1 (census/example_test.go:31)
//
// The census is off by default, and then costs a load and a branch at the beginning of each wait. While it is on, each
// wait, each task and each lock operation takes more time. The census can be switched on and off at any time.
//
// # Limits
//
// The census does not show waits that began, or locks that were taken, before Start. It shows a task that does not
// wait, or the line at which a task was started, only if the task belongs to one of Braid's schedulers and began to run
// after Start. Goroutines without a task, tasks of other schedulers, and Thens are shown only while they wait in a
// Braid operation or hold something.
//
// Holders are shown for a mutex.Mutex, an RWMutex, the permits of a semaphore, an MVar during Modify, a lazy value that
// is being computed, the members of a scope.Group or scope.Run, and everything that is built on these. An Ask is shown
// with the actor to which its request was sent last, if that actor has a task. One task may release what another task has taken. Promises,
// channels, latches, conds and stm transactions have no holder. Any task may end a wait for them, so such a wait is never part of a
// deadlock, even if no task is left to end it. A task that waits natively, for example for a sync.Mutex or in a system call, counts as not
// waiting. With the option StallAfter, its scheduler reports such a task with the locks that it holds.
//
// Each task of a Deadlock waits until another task of the cycle proceeds, or until its context ends. A Deadlock is called
// possible if its objects include permits of a semaphore or an RWMutex, or requests of actors: a program may release
// permits in a task that has taken none, or answer a request on another goroutine, and then the wait ends. If one task
// locks a Mutex and another task will unlock it, the census shows the first task as the holder.
//
// A task that runs the body of a scope.Run, or a child of a Scope or Group, is a member of this scope. The census shows the
// scopes as a tree, like the dump of kotlinx.coroutines: a scope is inside the scope of which the task that opened it was a
// member. To name the scope of a Group g, call Name(g.Scope, "server"). The parent of a scope that was opened before the
// census was switched on is unknown.
//
// The census keeps the scheduler of a waiting task in memory until the first check after the end of the wait. There is a
// check in every quarter of StuckAfter, or every 2.5 seconds if that is negative. While reports are on, each check takes
// about 15 microseconds for each wait that is older than StuckAfter. On a scheduler that preempts according to a seed, the
// same seed leads to a different run while the census is on.
//
// An object is shown with the name that Name gave it, or else with its type and address. The goroutine of a task has the
// same number in the dumps of package runtime and of net/http/pprof, so that its stack can be found there.
//
// In profiles, coroutines that are kept for later tasks have the label "braid": "idle coroutine" if they have become idle
// while the census was on. The goroutine profile may contain hundreds of such coroutines in one entry.
//
// If only the stacks are needed, use the goroutine profile of net/http/pprof, which costs nothing until it is requested.
package census

import (
	"context"
	"runtime/pprof"
	"sync"
	"time"

	"github.com/braidgo/braid/internal/labels"
	"github.com/braidgo/braid/internal/ledger"
)

// Options configure a Start. The zero Options are the defaults.
type Options struct {
	// StuckAfter is the time after which an unfinished Close or Shutdown is reported, with the tasks that wait on its
	// scheduler. The census also reports a process in which tasks wait, but none of them for a timer or a connection,
	// if no task, wait or lock has changed for this time. A report is repeated each time the duration has doubled. 0
	// means ten seconds. A negative StuckAfter disables the reports.
	StuckAfter time.Duration

	// OnStuck receives the reports, on a goroutine of the census. OnStuck may call the stop that Start has returned. If
	// OnStuck is nil, the reports are written to standard error.
	OnStuck func(report string)
}

// Start switches the census on until stop is called. Several Starts may overlap. The last stop switches the census off and
// drops all records.
func Start(o Options) (stop func()) {
	nameIdle()
	end := ledger.Start(describe)
	watched := startWatcher(o)
	return func() {
		watched()
		end()
	}
}

// nameIdle creates the labels of idle coroutines. Labels can be created only by setting them on a goroutine, so
// nameIdle sets them on the calling goroutine, and then restores the goroutine's own labels.
var nameIdle = sync.OnceFunc(func() {
	before := labels.Here()
	defer before.Put()
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels("braid", "idle coroutine")))
	labels.NameIdle(labels.Here())
})
