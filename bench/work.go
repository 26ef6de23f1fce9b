package main

import (
	"context"
	"runtime"
	"sync"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/suspend"
)

// This file defines the places in which the work of a row runs, and functions that repeat and divide work.

var bg = context.Background()

// uncancelled is a cancellable context that is never cancelled.
var uncancelled, _ = context.WithCancel(bg)

// times calls f n times. If f is a function literal, the compiler inlines the functions times, upTo and total.
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

// total calls f n times, and checks that the sum of the results is n.
func total(n int, f func() int) {
	sum := 0
	for range n {
		sum += f()
	}
	check(sum == n)
}

// again returns a work function that calls f n times.
func again(f func()) work { return func(n int) { times(n, f) } }

// A place is a function that runs all of fs concurrently, and returns when all have ended.
type place = func(fs ...func())

func goroutines(fs ...func()) {
	var wg sync.WaitGroup
	for _, f := range fs {
		wg.Go(f)
	}
	wg.Wait()
}

// tasks runs fs as tasks of one fifo, beginning with fs[0].
func tasks(fs ...func()) {
	inFifo(func() {
		for _, f := range fs[1:] {
			ok(suspend.Here().Go(f))
		}
		fs[0]()
	})
}

// fifos runs each of fs on its own fifo, on a goroutine that is not locked to a thread.
func fifos(fs ...func()) {
	var wg sync.WaitGroup
	for _, f := range fs {
		wg.Go(func() { inFifo(f) })
	}
	wg.Wait()
}

// inFifo runs f as the first task of a fifo, and returns when all tasks of the fifo have ended.
func inFifo(f func()) {
	ok(fifo.Run(bg, func(context.Context) error { f(); return nil }))
}

// inTask runs f as a task of a scheduler, and waits until the task has ended.
func inTask(on suspend.Spawner, f func()) {
	done := make(chan struct{})
	ok(on.Go(func() { defer close(done); f() }))
	<-done
}

// onProcs returns a work function that runs f with GOMAXPROCS set to procs.
func onProcs(procs int, f work) work {
	return func(n int) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		restart()
		f(n)
		stop()
	}
}

// split divides n operations among k goroutines. Goroutine w calls f(w, i) for its ith operation.
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

// pool starts a pool with the given number of workers, or with one worker per processor if workers is 0.
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
