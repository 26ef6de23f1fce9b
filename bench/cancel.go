package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/suspend"
)

var cancelRows = append(cancelCost(), cancelOne(false), cancelOne(true))

const (
	costTasks = 10_000
	costItems = 50_000
)

// cancelCost: producers and consumers, 10,000 together, hand 50,000 items over in one MVar, on one fifo. One item is an
// operation. Some of the tasks are cancelled while they are waiting, and the others do their work. The peer is the same
// without the cancelling. Everything is counted: starting the tasks, making the contexts, the end of each task.
func cancelCost() (all []row) {
	for _, kind := range []struct {
		name                 string
		producers, consumers int
	}{{"spmc", 1, costTasks - 1}, {"mpsc", costTasks - 1, 1}, {"mpmc", costTasks / 2, costTasks / 2}} {
		for _, percent := range []int{10, 20, 30} {
			side := func(cancelling bool) func(time.Duration) (float64, error) {
				whole := timedBy(func(n int) (took time.Duration) {
					for range n {
						took += handOver(kind.producers, kind.consumers, percent, cancelling)
					}
					return took
				})
				return func(d time.Duration) (float64, error) {
					v, err := whole(d)
					return v / costItems, err
				}
			}
			all = append(all, row{id: fmt.Sprintf("cancel-cost/%s/%d", kind.name, percent), unit: "ns", must: 1.05, aim: 1.01, rounds: 5,
				open: func() (*sides, error) { return &sides{ours: side(true), peer: side(false)}, nil }})
		}
	}
	return all
}

func handOver(producers, consumers, percent int, cancelling bool) time.Duration {
	var m mvar.MVar[int]
	var doomed []func(error)
	rest, _ := cancel.New(context.Background())
	toMake, toTake, arrived := costItems, costItems, 0
	// crowd starts n tasks, and once they wait cancels its share of them.
	crowd := func(n int, f func(ctx context.Context)) {
		for i := range n {
			ctx := rest
			if n > 1 && i*percent%100 < percent {
				c, stop := cancel.New(context.Background())
				ctx, doomed = c, append(doomed, stop)
			}
			must(0, suspend.Here().Go(func() { f(ctx) }))
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
	start := time.Now()
	inFifo(func() {
		if consumers > 1 {
			crowd(consumers, consume)
			crowd(producers, produce)
		} else {
			crowd(producers, produce)
			crowd(consumers, consume)
		}
	})
	check(arrived == costItems)
	return time.Since(start)
}

// cancelOne: to cancel one of a million that wait to take from an MVar, and for comparison one of a thousand; they wait
// by Then, each with a context of its own from package cancel. Counted are the cancelling, what removes the waiter
// from the queue, and the call that it ends in; a hundred are cancelled, and then come back, which is not counted, two
// hundred times. They are the hundred that came last, or else a hundred at random, which of a million the processor does
// not have in its caches. Each measurement has a crowd of its own, alone on the heap.
func cancelOne(random bool) row {
	id := "cancel-one/last"
	if random {
		id = "cancel-one/random"
	}
	side := func(n int) func(time.Duration) (float64, error) {
		return func(time.Duration) (float64, error) { return newCrowd(n).cancel(random), nil }
	}
	return row{id: id, unit: "ns", must: 1.5, aim: 1.1, rounds: 3, cold: true, open: func() (*sides, error) {
		return &sides{ours: side(1_000_000), peer: side(1000)}, nil
	}}
}

type crowd struct {
	m     mvar.MVar[int]
	stops []func(error)
	calls calls
	left  int // calls that ended a wait
}

func newCrowd(n int) *crowd {
	defer debug.SetGCPercent(debug.SetGCPercent(1000)) // it is not counted, and takes long enough
	c := &crowd{stops: make([]func(error), n)}
	for i := range c.stops {
		c.wait(i)
	}
	return c
}

func (c *crowd) wait(i int) {
	ctx, stop := cancel.New(context.Background())
	c.stops[i] = stop
	suspend.Then(ctx, c.m.TakeOp(), &c.calls, func(int, error) { c.left++ })
}

func (c *crowd) cancel(random bool) (each float64) {
	runtime.GC()
	const turns = 200
	var took time.Duration
	var who [100]int
	for range turns {
		for k := range who { // distinct ones
			who[k] = len(c.stops) - 1 - k
			if random {
				part := len(c.stops) / len(who)
				who[k] = k*part + rand.IntN(part)
			}
		}
		start := time.Now()
		for _, i := range who {
			c.stops[i](nil)
		}
		c.calls.run()
		took += time.Since(start)
		for _, i := range who {
			c.wait(i)
		}
	}
	check(c.left == turns*len(who))
	return float64(took) / float64(c.left)
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
