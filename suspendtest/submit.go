package suspendtest

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/braidgo/braid/suspend"
)

// The following checks test the promises of Go for tasks and of Execute for callbacks.

func runOnce(e *env) {
	const n = 200
	var runs [4 * n]atomic.Int32
	var ended sync.WaitGroup
	start := func(k int) {
		for i := range n {
			ended.Add(1)
			err := e.submit(func() {
				e.progress()
				if runs[k*n+i].Add(1) == 1 {
					ended.Done()
				}
			})
			if err != nil {
				e.fatalf("a function was refused although close has not been called: %v", err)
			}
		}
	}
	var starters sync.WaitGroup
	starters.Go(func() { start(0) })
	starters.Go(func() { start(1) })
	inside := e.task(func() { start(2); suspend.Yield(); start(3) })
	e.expect("it blocks")
	starters.Wait()
	recv(e, inside, "a function that submits others did not end")
	e.expect("a function that was accepted did not run")
	ended.Wait()
	e.letPark()
	e.close()
	for i := range runs {
		if k := runs[i].Load(); k != 1 {
			e.fatalf("a function ran %d times", k)
		}
	}
}

func notInline(e *env) {
	var mu sync.Mutex
	start := func() chan struct{} {
		mu.Lock()
		defer mu.Unlock()
		return e.task(func() {
			mu.Lock() // a function that ran inline would deadlock here
			defer mu.Unlock()
		})
	}
	e.expect("it did not return before f had run")
	recv(e, start(), "a function that was accepted did not run")
	var inner chan struct{}
	e.do("called inside another function, it did not return before f had run", func() { inner = start() })
	recv(e, inner, "a function that another function submitted did not run")
}

func runInOrder(e *env) {
	const n = 200
	var mu sync.Mutex
	var order []int
	var ended []chan struct{}
	for i := range n {
		ended = append(ended, e.task(func() {
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
		}))
	}
	for _, ended := range ended {
		recv(e, ended, "a function that was accepted did not run")
	}
	if !slices.IsSorted(order) {
		e.errorf("functions that were submitted in order ran in the order %v", order)
	}
}

// submitWhileClosing submits functions from several goroutines while the scheduler closes and after it has closed. The number
// of submissions is bounded, because a scheduler may stay open until it is idle.
func submitWhileClosing(e *env) {
	const goroutines, before, most = 3, 20, 300
	var accepted, ran atomic.Int64
	submit := func() {
		if e.submit(func() { ran.Add(1) }) == nil {
			accepted.Add(1)
		}
	}
	var wg sync.WaitGroup
	started := make(chan struct{}, goroutines)
	for range goroutines {
		wg.Go(func() {
			for i := range most {
				if submit(); i == before {
					started <- struct{}{}
				}
				runtime.Gosched()
			}
		})
	}
	for range goroutines {
		recv(e, started, "it blocks")
	}
	e.close()
	e.expect("it does not return after close")
	wg.Wait()
	for range before {
		submit()
	}
	e.expect("a function was accepted while the scheduler was closing, or after, and did not run")
	for ran.Load() < accepted.Load() && !e.over.Load() {
		runtime.Gosched()
	}
	if a, r := accepted.Load(), ran.Load(); a != r && !e.over.Load() {
		e.errorf("%d functions were accepted, and %d ran", a, r)
	}
}

func submitToBusy(e *env) {
	started, release := make(chan struct{}), make(chan struct{})
	busy := e.task(func() { close(started); <-release }) // waits natively and so keeps the worker busy
	recv(e, started, "a function that was accepted did not run")
	e.expect("it did not return while another function was running")
	var ended []chan struct{}
	for range 2000 {
		ended = append(ended, e.task(func() {}))
	}
	close(release)
	recv(e, busy, "a function did not return")
	for _, ended := range ended {
		recv(e, ended, "a function that was submitted while another was running did not run")
	}
}
