package main

import (
	"context"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/suspend"
)

// An exchange is a set of producers and consumers on one fifo, which hand items over through one MVar. A single producer starts after a
// crowd of consumers that already wait, and a single consumer starts after a crowd of producers. Some of the waiting tasks are cancelled,
// and the remaining tasks hand over all items. The field percent is the percentage of a crowd that is cancelled.
type exchange struct{ tasks, producers, items, percent int }

// cancelCost measures the cost of an item in an exchange with one producer, with one consumer, or with equally many producers and
// consumers. The sizes come from Ande's thesis (2023). The peer is the same exchange without cancellations. The time to start and end the
// tasks and to create the contexts is counted. No garbage collection runs during the measurement, because a collection would take a varying
// time, up to a third of the total.
func cancelCost(kind, percent int) opener {
	return func(b *bench) (ours, peer side) {
		tasks := b.of(10_000, 40)
		x := exchange{tasks, []int{1, tasks - 1, tasks / 2}[kind], b.of(50_000, 200), percent}
		percent := debug.SetGCPercent(-1)
		b.close(func() { debug.SetGCPercent(percent) })
		one := func(cancelling bool) side {
			return func() float64 {
				n, took := 0, time.Duration(0)
				for ; took < b.Round; n++ {
					took += x.run(cancelling)
				}
				return float64(took) / float64(n*x.items)
			}
		}
		return one(true), one(false)
	}
}

func (x exchange) run(cancelling bool) time.Duration {
	var m mvar.MVar[int]
	var doomed []func(error)
	rest, _ := cancel.New(bg)
	toMake, toTake, arrived := x.items, x.items, 0
	// crowd starts n tasks. If the flag cancelling is set, crowd cancels a percentage of the tasks once all of them are waiting.
	crowd := func(n int, f func(ctx context.Context)) {
		for i := range n {
			ctx := rest
			if n > 1 && i*x.percent%100 < x.percent {
				c, stop := cancel.New(bg)
				ctx, doomed = c, append(doomed, stop)
			}
			ok(suspend.Here().Go(func() { f(ctx) }))
		}
		suspend.Yield()
		if cancelling {
			for _, stop := range doomed {
				stop(nil)
			}
		}
		doomed = doomed[:0]
	}
	produce := func(ctx context.Context) {
		for toMake > 0 {
			toMake--
			if m.Put(ctx, 1) != nil {
				toMake++
				return
			}
		}
	}
	consume := func(ctx context.Context) {
		for toTake > 0 {
			toTake--
			v, err := m.Take(ctx)
			if err != nil {
				toTake++
				return
			}
			arrived += v
		}
	}
	runtime.GC()
	start := time.Now()
	inFifo(func() {
		consumers := x.tasks - x.producers
		if consumers > 1 {
			crowd(consumers, consume)
		}
		crowd(x.producers, produce)
		if consumers == 1 {
			crowd(consumers, consume)
		}
	})
	check(arrived == x.items)
	return time.Since(start)
}

// cancelOne measures the cost of cancelling one of a million waiters that take from an MVar. The peer is the cost of cancelling one waiter
// of a crowd that is spread over the given number of MVars. The waiters are continuations of Then, and each has its own context of package
// cancel. The measurement includes the cancellation, the removal of the waiter from the queue, and the call of the continuation. Two
// hundred times, a hundred waiters are cancelled; the time to replace them by new waiters is not counted. Each measurement starts with a
// new crowd, and no garbage collection runs during the measurement.
//
// The waiters must be in the processor's caches on both sides or on neither side. Otherwise the row would mainly compare cache misses. The
// row cancel-one/last therefore cancels the last hundred waiters. The row cancel-one/anywhere chooses a hundred waiters at random among a
// million waiters. On the peer's side, the million waiters are spread over a thousand MVars. In this row cache misses dominate both sides,
// and a cost that grows with the length of the queue would be visible.
func cancelOne(anywhere bool, crowd, places int) opener {
	return func(b *bench) (ours, peer side) {
		one := func(n, places int) side {
			return func() float64 { return cancelSome(n, places, anywhere, b.of(200, 2)) }
		}
		return one(b.of(1_000_000, 1000), 1), one(b.of(crowd, 1000), places)
	}
}

// cancelSome spreads n continuations evenly over the given number of MVars, and returns the cost of a cancellation.
func cancelSome(n, places int, anywhere bool, turns int) (each float64) {
	percent := debug.SetGCPercent(1000) // shortens the uncounted time to create the crowd
	m, on := make([]mvar.MVar[int], places), new(calls)
	stops, ended := make([]func(error), n), 0
	wait := func(i int) {
		ctx, stop := cancel.New(bg)
		stops[i] = stop
		suspend.Then(ctx, m[i/(n/places)].TakeOp(), on, func(int, error) { ended++ })
	}
	upTo(n, wait)
	debug.SetGCPercent(-1)
	defer debug.SetGCPercent(percent)
	runtime.GC()
	var took time.Duration
	chosen := make([]int, min(100, n))
	for turn := range turns {
		for k := range chosen { // chooses distinct waiters
			chosen[k] = n - 1 - k
			if anywhere {
				part := n / len(chosen)
				chosen[k] = k*part + rand.IntN(part)
			}
		}
		start := time.Now()
		for _, i := range chosen {
			stops[i](nil)
		}
		on.run()
		check(ended == (turn+1)*len(chosen))
		took += time.Since(start)
		for _, i := range chosen {
			wait(i)
		}
		runtime.Gosched()
	}
	return float64(took) / float64(turns*len(chosen))
}

// calls is an executor that collects functions until run is called.
type calls []func()

func (c *calls) Execute(f func()) error { *c = append(*c, f); return nil }

func (c *calls) run() {
	for _, f := range *c {
		f()
	}
	clear(*c)
	*c = (*c)[:0]
}
