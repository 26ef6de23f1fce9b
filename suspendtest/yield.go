package suspendtest

import (
	"runtime"
	"sync/atomic"

	"github.com/braidgo/braid/suspend"
)

// yieldGivesWay starts tasks one after another and counts the calls of Yield until each task has run. If Yield gives way, one
// or two calls are enough. Otherwise the caller yields thousands of times, until the runtime preempts the caller.
//
// An idle processor would run the task, so other goroutines keep all other processors busy. A task may be given to another
// thread, which then waits for a processor. Therefore the check passes if a quarter of the tasks run soon.
func yieldGivesWay(e *env) {
	if !hasYield(e) {
		return
	}
	var over atomic.Bool
	defer over.Store(true)
	for range runtime.GOMAXPROCS(0) - 1 {
		go func() {
			for !over.Load() && !e.over.Load() {
			}
		}()
	}
	const tasks, many = 40, 100
	e.do("a task did not run while another yielded", func() {
		soon := 0
		for range tasks {
			var ran atomic.Bool
			if err := suspend.Here().Go(func() { ran.Store(true) }); err != nil {
				e.fatalf("Here().Go: %v", err)
			}
			yields := 0
			for ; !ran.Load() && !e.over.Load(); yields++ {
				suspend.Yield()
			}
			if yields <= many {
				soon++
			}
			e.progress()
		}
		if soon < tasks/4 {
			e.errorf("a task that waits for another to run called Yield more than %d times, for %d of %d", many, tasks-soon, tasks)
		}
	})
}

// hasYield reports whether the tasks have a Yield method, or are goroutines.
func hasYield(e *env) (has bool) {
	e.do("a task did not run", func() {
		_, own := suspend.Self().(interface{ Yield() })
		has = own || suspend.Here() == suspend.Goroutines
	})
	return has
}
