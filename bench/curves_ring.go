package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// ring is after Haller and Odersky (2009).
var ring = curve{
	id: "ring", title: "A token through a ring of n processes",
	about:   "One token, 100,000 passes; making the ring and ending it is not counted.",
	x:       axis{label: "processes in the ring", log: true},
	figures: []figure{{name: "throughput", label: "passes per second"}},
	series:  []string{"MVars, Then on a fifo", "MVars, tasks of a fifo", "MVars, goroutines", "channels of one, goroutines"},
	rounds:  3, cold: true,
	points: func(m mode) []float64 {
		if m.Tiny {
			return []float64{10, 100}
		}
		return []float64{10, 100, 1000, 10_000, 100_000, 600_000}
	},
	open: func(m mode, x float64) (*station, error) {
		n := int(x)
		passes := m.of(100_000, 100)
		one := func(f func(n, passes int) time.Duration) measurement {
			return func() ([]float64, error) {
				defer debug.SetGCPercent(debug.SetGCPercent(1000))
				return []float64{float64(passes) / f(n, passes).Seconds()}, nil
			}
		}
		s := &station{sides: []measurement{one(ringThen), one(ringTasks), one(ringGoroutines), one(ringChannels)}}
		for i, each := range []int{1000, taskBytes, taskBytes, taskBytes / 2} {
			s.fits(i, n, each)
		}
		return s, nil
	},
}

func ringThen(n, passes int) (took time.Duration) {
	s := fifo.New(fifo.Options{})
	all := make([]mvar.MVar[int], n)
	ctx, cancel := context.WithCancel(context.Background()) // ends those that wait for another token
	must(0, s.Run(ctx, func(context.Context) error {
		defer cancel()
		var start time.Time
		over := promise.New[struct{}]()
		for i := range n {
			next := &all[(i+1)%n]
			var pass func(int, error)
			pass = func(left int, err error) {
				if err != nil {
					return
				}
				if left == 0 {
					took = time.Since(start)
					_ = over.Fill(struct{}{})
					return
				}
				check(next.TryPut(left - 1))
				suspend.Then(ctx, all[i].TakeOp(), s, pass)
			}
			suspend.Then(ctx, all[i].TakeOp(), s, pass)
		}
		runtime.GC()
		start = time.Now()
		check(all[0].TryPut(passes))
		_, err := over.Await(ctx)
		return err
	}))
	return took
}

// member is one of a ring of tasks. It ends when the token has made its passes, the others when they are given -1.
func member(in, next *mvar.MVar[int], over func()) {
	for left := must(in.Take(context.Background())); left >= 0; left = must(in.Take(context.Background())) {
		if left == 0 {
			over()
			return
		}
		must(0, next.Put(context.Background(), left-1))
	}
}

func ringOf(n, passes int, begin func(func()), ready func()) (took time.Duration) {
	all := make([]mvar.MVar[int], n)
	over := promise.New[time.Duration]()
	var start time.Time
	for i := range n {
		begin(func() { member(&all[i], &all[(i+1)%n], func() { _ = over.Fill(time.Since(start)) }) })
	}
	ready()
	runtime.GC()
	start = time.Now()
	check(all[0].TryPut(passes))
	took = must(over.Await(context.Background()))
	for i := range all {
		check(all[i].TryPut(-1))
	}
	return took
}

func ringTasks(n, passes int) (took time.Duration) {
	inFifo(func() {
		here := suspend.Here()
		took = ringOf(n, passes, func(f func()) { must(0, here.Go(f)) }, suspend.Yield)
	})
	return took
}

func ringGoroutines(n, passes int) time.Duration {
	var all, began sync.WaitGroup
	began.Add(n)
	defer all.Wait()
	return ringOf(n, passes, func(f func()) { all.Go(func() { began.Done(); f() }) }, began.Wait)
}

func ringChannels(n, passes int) time.Duration {
	all := make([]chan int, n)
	for i := range all {
		all[i] = make(chan int, 1)
	}
	var wg, began sync.WaitGroup
	began.Add(n)
	over := make(chan time.Duration, 1)
	var start time.Time
	for i := range n {
		wg.Go(func() {
			began.Done()
			in, next := all[i], all[(i+1)%n]
			for left := <-in; left >= 0; left = <-in {
				if left == 0 {
					over <- time.Since(start)
					return
				}
				next <- left - 1
			}
		})
	}
	began.Wait()
	runtime.GC()
	start = time.Now()
	all[0] <- passes
	took := <-over
	for _, c := range all {
		c <- -1
	}
	wg.Wait()
	return took
}
