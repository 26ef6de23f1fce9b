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

var cancelRows = append(cancelCost(), cancelOne()...)

// An exchange is producers and consumers that hand items over in one MVar, all on one fifo. With one of either, the
// crowd of the others is there first.
type exchange struct {
	name         string
	tasks, items int
	producers    int
	percent      int  // of a crowd are cancelled
	lazily       bool // with package cancel's Lazily
}

// exchanges are the three kinds, of the size of the thesis.
func exchanges(m mode, percent int) []exchange {
	tasks, items := m.of(10_000, 40), m.of(50_000, 200)
	all := []exchange{
		{name: "spmc", producers: 1},
		{name: "mpsc", producers: tasks - 1},
		{name: "mpmc", producers: tasks / 2},
	}
	for i := range all {
		all[i].tasks, all[i].items, all[i].percent = tasks, items, percent
	}
	return all
}

// cancelCost: producers and consumers, 10,000 together, hand 50,000 items over in one MVar, on one fifo. One item is an
// operation. Some of the tasks are cancelled while they are waiting, and the others do their work. The peer is the same
// without the cancelling. Everything is counted: starting the tasks, making the contexts, the end of each task; but no
// collection runs in it, which would take a third of the time of either side, and now more, now less.
func cancelCost() (all []row) {
	for kind, name := range []string{"spmc", "mpsc", "mpmc"} {
		for _, percent := range []int{10, 20, 30} {
			all = append(all, row{id: fmt.Sprintf("cancel-cost/%s/%d", name, percent), against: "the same without cancelling",
				unit: "ns", must: 1.15, aim: 1.01, rounds: 48,
				open: func(m mode) (*sides, error) {
					x := exchanges(m, percent)[kind]
					before := debug.SetGCPercent(-1)
					return &sides{ours: x.each(true), peer: x.each(false), close: func() { debug.SetGCPercent(before) }}, nil
				}})
		}
	}
	return all
}

// each is the side of x that measures an item.
func (x exchange) each(cancelling bool) side {
	whole := timedBy(func(n int) (took time.Duration) {
		for range n {
			took += x.run(cancelling)
		}
		return took
	})
	return func(d time.Duration) (float64, error) {
		v, err := whole(d)
		return v / float64(x.items), err
	}
}

func (x exchange) run(cancelling bool) time.Duration {
	var m mvar.MVar[int]
	var doomed []func(error)
	rest, _ := cancel.New(context.Background())
	toMake, toTake, arrived := x.items, x.items, 0
	// crowd starts n tasks, and once they wait cancels its share of them.
	crowd := func(n int, f func(ctx context.Context)) {
		for i := range n {
			ctx := rest
			if n > 1 && i*x.percent%100 < x.percent {
				c, stop := cancel.New(context.Background())
				ctx, doomed = c, append(doomed, stop)
				if x.lazily {
					ctx = suspend.Lazily(c)
				}
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
	runtime.GC()
	start := time.Now()
	inFifo(func() {
		if consumers := x.tasks - x.producers; consumers > 1 {
			crowd(consumers, consume)
			crowd(x.producers, produce)
		} else {
			crowd(x.producers, produce)
			crowd(consumers, consume)
		}
	})
	check(arrived == x.items)
	return time.Since(start)
}

// The thesis has this as figure 6.3. Each figure is of one round: the same crowd twice, with the cancelling and
// without, each of them first in every second round.
var cancelPercent = curve{
	id: "cancel-percent", title: "Figure 6.3: what cancelling a share of the waiting tasks costs",
	about:   "10,000 tasks hand 50,000 items over in one MVar on one fifo; the share is cancelled while it waits.",
	x:       axis{label: "cancelled, %"},
	figures: []figure{{name: "cost", label: "time with cancelling / without"}, {name: "time", label: "ns per item, with cancelling"}},
	series:  []string{"SPMC", "MPSC", "MPMC", "SPMC lazily", "MPSC lazily", "MPMC lazily"},
	rounds:  5,
	points:  func(mode) []float64 { return []float64{10, 20, 30} },
	open: func(m mode, percent float64) (*station, error) {
		var s station
		for _, lazily := range []bool{false, true} {
			for _, x := range exchanges(m, int(percent)) {
				x.lazily = lazily
				turn := 0
				s.sides = append(s.sides, func() ([]float64, error) {
					turn++
					var with, without time.Duration
					if turn%2 == 0 {
						with = x.run(true)
					}
					without = x.run(false)
					if turn%2 == 1 {
						with = x.run(true)
					}
					return []float64{float64(with) / float64(without), float64(with) / float64(x.items)}, nil
				})
			}
		}
		return &s, nil
	},
}

// cancelOne measures cancelling one of a million waiters that take from an MVar, and for comparison one of a thousand. They wait by Then,
// each with a context of its own from package cancel. It counts the cancelling, the removal of the waiter from the queue, and the call at
// its end. A hundred are cancelled and then come back, which is not counted, two hundred times. Each measurement has a crowd of its
// own, alone on the heap, and no collection runs in it.
//
// The processor should have the waiters in its caches on both sides or on neither. Otherwise the row measures memory. So they are the
// last hundred, which tells the exact cost. Or they are a hundred anywhere, one in each hundredth of a million on both sides, which wait
// in a thousand MVars on the one. There memory dominates both sides, and a cost that grows with the queue would show.
func cancelOne() []row {
	compare := func(id, against string, must, aim float64, random bool, crowd, places int) row {
		return row{id: id, against: against, unit: "ns", must: must, aim: aim, rounds: 3, cold: true, open: func(m mode) (*sides, error) {
			one := func(n, places int) side {
				return func(time.Duration) (float64, error) { return newCrowd(n, places).cancel(random, m.of(200, 2)), nil }
			}
			return &sides{ours: one(m.of(1_000_000, 1000), 1), peer: one(m.of(crowd, 1000), places)}, nil
		}}
	}
	return []row{
		compare("cancel-one/last", "cancel 1 of 1k", 1.5, 1.1, false, 1000, 1),
		compare("cancel-one/anywhere", "cancel 1 of 1k, in one of 1k MVars", 1.5, 1.1, true, 1_000_000, 1000),
	}
}

// A crowd waits, each with a context of its own: wait(i) has the i-th wait, and stop(i) cancels that.
type crowd struct {
	n          int
	wait, stop func(i int)
	settle     func(ended int) // returns when this number of waits has ended
	close      func()
}

// newCrowd makes a crowd of n waiters without a task, spread over the places in turn.
func newCrowd(n, places int) *crowd {
	defer debug.SetGCPercent(debug.SetGCPercent(1000)) // it is not counted, and takes long enough
	m := make([]mvar.MVar[int], places)
	each := n / places
	var on calls
	stops, ended := make([]func(error), n), 0
	c := &crowd{n: n, stop: func(i int) { stops[i](nil) }, close: func() {}}
	c.wait = func(i int) {
		ctx, stop := cancel.New(context.Background())
		stops[i] = stop
		suspend.Then(ctx, m[i/each].TakeOp(), &on, func(int, error) { ended++ })
	}
	c.settle = func(n int) { on.run(); check(ended == n) }
	c.all()
	return c
}

func (c *crowd) all() {
	for i := range c.n {
		c.wait(i)
	}
}

func (c *crowd) cancel(random bool, turns int) (each float64) {
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var took time.Duration
	who := make([]int, min(100, c.n))
	for turn := range turns {
		for k := range who { // distinct ones
			who[k] = c.n - 1 - k
			if random {
				part := c.n / len(who)
				who[k] = k*part + rand.IntN(part)
			}
		}
		start := time.Now()
		for _, i := range who {
			c.stop(i)
		}
		c.settle((turn + 1) * len(who))
		took += time.Since(start)
		for _, i := range who {
			c.wait(i)
		}
		runtime.Gosched()
		suspend.Yield()
	}
	return float64(took) / float64(turns*len(who))
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
