package main

import (
	"context"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/suspend"
)

// An exchange is producers and consumers that hand items over in one MVar, all on one fifo. One producer meets a crowd of consumers that
// already wait, and one consumer a crowd of producers. Some of the waiting tasks are cancelled, and the remaining tasks hand over all
// items.
type exchange struct {
	tasks, producers int
	items            int
	percent          int // the share of a crowd that is cancelled
}

// cancelCost measures an item of an exchange with one producer, with one consumer, or with half of the tasks each, in the size of the
// thesis. The peer is the same exchange without the cancelling. Everything is counted: starting the tasks, making the contexts, the end of
// each task. But no collection runs in the measurement, to avoid its varying time, a third of the time of either side.
func cancelCost(kind, percent int) func(b *bench) (ours, peer side) {
	return func(b *bench) (ours, peer side) {
		tasks := b.of(10_000, 40)
		x := exchange{tasks, []int{1, tasks - 1, tasks / 2}[kind], b.of(50_000, 200), percent}
		b.close(collecting(-1))
		one := func(cancelling bool) side {
			return func(d time.Duration) float64 {
				n, took := 0, time.Duration(0)
				for ; took < d; n++ {
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
	// crowd starts n tasks. When all of them wait, it cancels a share of them, except for the peer.
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

// cancelOne measures cancelling one of a million waiters that take from an MVar, and for comparison one waiter of a crowd in some places.
// The waiters wait by Then, and each has a separate context of package cancel. The measurement counts the cancelling, the removal of the
// waiter from the queue, and the call at its end. A hundred waiters are cancelled, and replaced by new waiters, which is not counted, two
// hundred times. Each measurement has a new crowd, alone on the heap, and no collection runs in it.
//
// The processor must have the waiters in its caches on both sides or on neither. Otherwise the row measures memory. So the row
// cancel-one/last cancels the last hundred waiters, for the exact cost. The row cancel-one/anywhere cancels a waiter at random in each
// hundredth of a million, on both sides, but the peer's million waits in a thousand MVars. There memory dominates both sides, and a cost
// that grows with the queue would show.
func cancelOne(anywhere bool, crowd, places int) func(b *bench) (ours, peer side) {
	return func(b *bench) (ours, peer side) {
		one := func(n, places int) side {
			return func(time.Duration) float64 { return cancelSome(n, places, anywhere, b.of(200, 2)) }
		}
		return one(b.of(1_000_000, 1000), 1), one(b.of(crowd, 1000), places)
	}
}

// cancelSome spreads n waiters without a task over the places in turn.
func cancelSome(n, places int, anywhere bool, turns int) (each float64) {
	back := collecting(1000) // making the crowd is not counted, but must not take too long
	m, on := make([]mvar.MVar[int], places), new(calls)
	stops, ended := make([]func(error), n), 0
	wait := func(i int) {
		ctx, stop := cancel.New(bg)
		stops[i] = stop
		suspend.Then(ctx, m[i/(n/places)].TakeOp(), on, func(int, error) { ended++ })
	}
	for i := range n {
		wait(i)
	}
	back()
	runtime.GC()
	defer collecting(-1)()
	var took time.Duration
	chosen := make([]int, min(100, n))
	for turn := range turns {
		for k := range chosen { // the chosen waiters are distinct
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

// calls is an executor: a list of functions that its owner runs.
type calls struct{ list []func() }

func (c *calls) Execute(f func()) error { c.list = append(c.list, f); return nil }

func (c *calls) run() {
	for _, f := range c.list {
		f()
	}
	clear(c.list)
	c.list = c.list[:0]
}
