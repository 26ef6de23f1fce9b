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

// An exchange is producers and consumers that hand items over in one MVar, all on one fifo. With one of either, the
// crowd of the others is there first. Some of the tasks are cancelled while they are waiting, and the others do their work.
type exchange struct {
	tasks, producers int
	items            int
	percent          int // of a crowd are cancelled
}

// cancelCost is an item of an exchange with one producer, one consumer, or half of each, in the size of the thesis. The peer is the same without the cancelling. Everything is counted: starting the tasks, making
// the contexts, the end of each task; but no collection runs in it, which would take a third of the time of either side, and now more,
// now less.
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
	// crowd starts n tasks, and once they wait cancels its share of them.
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

// cancelOne measures cancelling one of a million waiters that take from an MVar, and for comparison one of a crowd in some places. They
// wait by Then, each with a context of its own from package cancel. It counts the cancelling, the removal of the waiter from the queue,
// and the call at its end. A hundred are cancelled and then come back, which is not counted, two hundred times. Each measurement has a
// crowd of its own, alone on the heap, and no collection runs in it.
//
// The processor should have the waiters in its caches on both sides or on neither. Otherwise the row measures memory. So they are the
// last hundred, which tells the exact cost. Or they are a hundred anywhere, one in each hundredth of a million on both sides, which wait
// in a thousand MVars on the one. There memory dominates both sides, and a cost that grows with the queue would show.
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
	back := collecting(1000) // the crowd is not counted, and takes long enough
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
		for k := range chosen { // distinct ones
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

// calls is an executor: a list that its owner runs.
type calls struct{ list []func() }

func (c *calls) Execute(f func()) error { c.list = append(c.list, f); return nil }

func (c *calls) run() {
	for _, f := range c.list {
		f()
	}
	clear(c.list)
	c.list = c.list[:0]
}
