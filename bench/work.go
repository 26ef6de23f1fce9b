package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/suspend"
)

// The work of a row runs in one of several places, and may be divided.

var bg = context.Background()

// uncancelled is a context that could be cancelled, but is not.
var uncancelled, _ = context.WithCancel(bg)

// times, upTo and total are loops. The compiler inlines them with a literal f.
func times(n int, f func()) {
	for range n {
		f()
	}
}

func upTo(n int, f func(i int)) {
	for i := range n {
		f(i)
	}
}

// total adds n results of f, each of which must be 1.
func total(n int, f func() int) {
	sum := 0
	for range n {
		sum += f()
	}
	check(sum == n)
}

// again makes a work that calls f n times.
func again(f func()) work { return func(n int) { times(n, f) } }

// A place runs all of fs at once, and returns when all have ended.
type place = func(fs ...func())

func goroutines(fs ...func()) {
	var wg sync.WaitGroup
	for _, f := range fs {
		wg.Go(f)
	}
	wg.Wait()
}

// tasks runs fs as tasks of one fifo, and begins with the first.
func tasks(fs ...func()) {
	inFifo(func() {
		for _, f := range fs[1:] {
			ok(suspend.Here().Go(f))
		}
		fs[0]()
	})
}

// fifos runs each of fs on a new fifo, on goroutines that are not locked to threads.
func fifos(fs ...func()) {
	all := make([]func(), len(fs))
	for i, f := range fs {
		all[i] = func() { inFifo(f) }
	}
	goroutines(all...)
}

// inFifo runs f as the first task of a fifo, to the end of all its tasks.
func inFifo(f func()) {
	ok(fifo.Run(bg, func(context.Context) error { f(); return nil }))
}

// inTask runs f as a task of on.
func inTask(on suspend.Spawner, f func()) {
	done := make(chan struct{})
	ok(on.Go(func() { defer close(done); f() }))
	<-done
}

// onProcs runs f with GOMAXPROCS set to procs.
func onProcs(procs int, f work) work {
	return func(n int) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		restart()
		f(n)
		stop()
	}
}

// split divides n operations among k goroutines. Worker w calls f(w, i) for its operation i.
func split(n, k int, f func(w, i int)) {
	var wg sync.WaitGroup
	for w := range k {
		wg.Go(func() {
			for i := range (n + w) / k {
				f(w, i)
			}
		})
	}
	wg.Wait()
}

// pool opens a pool with a number of workers. 0 means a worker for each processor.
func (b *bench) pool(workers int) *workstealing.Pool {
	p := workstealing.New(workstealing.Options{Workers: workers})
	b.close(func() { ok(p.Close()) })
	return p
}

func (b *bench) loop(o eventloop.Options) *eventloop.Loop {
	l := must(eventloop.New(o))
	b.close(func() { ok(l.Close()) })
	return l
}

// collecting sets the percentage of the collector until the returned function is called.
func collecting(percent int) (back func()) {
	before := debug.SetGCPercent(percent)
	return func() { debug.SetGCPercent(before) }
}
