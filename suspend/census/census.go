// Package census shows which task waits for which, and why nothing moves. The dump of goroutines of a program that hangs
// has the stack of each suspended task, but not the object for which it waits, since when, and which task holds the object:
//
//	defer census.Start(census.Options{})()
//	http.Handle("/debug/braid/", census.Handler())
//
// While the census is on, Take returns all tasks that live, with the object of each wait, its time, its line, and the holders. Circles of tasks
// that wait for each other are named as a deadlock, also between schedulers. Handler shows it as a page, as text and as JSON:
//
//	deadlock: 2 tasks wait for each other; a context may end it
//	  goroutine 19 (fifo) waits for mutex.Mutex "current": mutex.Mutex.Lock at census_test.Example.func1 (census/example_test.go:37), 1.2s
//	    goroutine 21 (workstealing) has held it for 1.2s: taken at census_test.Example.func1 (census/example_test.go:31)
//	  goroutine 21 (workstealing) waits for mutex.Mutex "savings": mutex.Mutex.Lock at census_test.Example.func1 (census/example_test.go:37), 1.2s
//	    goroutine 19 (fifo) has held it for 1.2s: taken at census_test.Example.func1 (census/example_test.go:31)
//
// It is off at first, and costs a load and a branch where a wait begins. While it is on, each wait, each task and each lock that is taken costs
// some more. It can be switched on and off at any time.
//
// # Limits
//
// Waits that began before the Start are not known, nor locks that were taken before. Tasks that do not wait, and the line where a task began,
// are known for the schedulers of Braid, from the Start on, once the task runs. A goroutine without a task is there while it waits in an
// operation of Braid, or holds something. So is a task of any other scheduler, and a Then.
//
// The holders are known of a mutex.Mutex and an RWMutex, of permits of a semaphore, of an MVar in Modify, of a lazy value that is computed, and
// of all that is made of these. One task may give back what another one has taken. A promise, a channel, a latch, a cond and a transaction of stm
// have no holder. Any task may end such a wait, so it is in no deadlock, even if no task is left that would. A task that waits natively, as for
// a sync.Mutex or in a system call, counts as not waiting. StallAfter of its scheduler reports it, with the locks that it holds.
//
// Each task of a Deadlock waits until another task of the circle goes on, or its context ends. It is called possible if permits of a semaphore or an
// RWMutex are among the objects: some programs give back permits in a task that has taken none, and then such a wait ends. A Mutex that
// another task unlocks than has locked it is taken for held by the latter until then.
//
// A task and its scheduler are kept until a look after the wait has ended. While reports are on, each look takes some 15 microseconds for
// each wait older than StuckAfter. With a scheduler that preempts by a seed, a seed means another run while the census is on.
//
// An object has the name that Name gave it, or else its type and address. The goroutine of a task has the same number in the dumps of package
// runtime and of net/http/pprof, so that its stack can be found there.
//
// Coroutines that are kept for later tasks have the label "braid": "idle coroutine" in profiles, if they have become idle while the census was
// on. The goroutine profile may have hundreds of them, in one entry.
//
// Use the goroutine profile of net/http/pprof for the stacks alone, which costs nothing before it is asked for.
package census

import (
	"context"
	"runtime/pprof"
	"sync"
	"time"

	"github.com/braidgo/braid/internal/labels"
	"github.com/braidgo/braid/internal/ledger"
)

// Options are the options of a Start. The zero Options are the default.
type Options struct {
	// StuckAfter is the time after which a Close or a Shutdown that has not ended is reported, with the tasks that wait on its scheduler.
	// So is a process in which nothing has begun or ended for so long, while tasks wait, and none of them for a timer or a
	// connection: then no Run ends. A report of one event comes again when its time has doubled. 0 is ten seconds. With a negative
	// StuckAfter there are no reports.
	StuckAfter time.Duration

	// OnStuck gets the reports, on a goroutine of the census. It may call stop. If it is nil, the reports go to standard error,
	// as the reports of StallAfter do.
	OnStuck func(report string)
}

// Start switches the census on until stop is called. Several Starts may overlap: the last stop switches the census off, and forgets all.
func Start(o Options) (stop func()) {
	nameIdle()
	end := ledger.Start(describe)
	watched := watch(o)
	return func() {
		watched()
		end()
	}
}

// nameIdle makes the labels of idle coroutines. To make them it must set labels of the calling goroutine, which it puts back.
var nameIdle = sync.OnceFunc(func() {
	before := labels.Here()
	defer before.Put()
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels("braid", "idle coroutine")))
	labels.NameIdle(labels.Here())
})
