package main

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// passing is the ring of Haller and Odersky (2009): passes a second of a token through a ring of n.
func passing(b *bench, x float64) (all []measurement) {
	n, passes := int(x), b.of(100_000, 100)
	for _, ring := range []func(n, passes int) time.Duration{ringThen, ringTasks, ringGoroutines, ringChannels} {
		all = append(all, func() float64 {
			defer collecting(1000)()
			return float64(passes) / ring(n, passes).Seconds()
		})
	}
	b.fits(all, n, 1000, taskBytes, taskBytes, taskBytes/2)
	return all
}

func ringThen(n, passes int) (took time.Duration) {
	s := fifo.New(fifo.Options{})
	all := make([]mvar.MVar[int], n)
	ctx, cancel := context.WithCancel(bg) // ends those that wait for another token
	ok(s.Run(ctx, func(context.Context) error {
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

// ringOf begins a member for each of n. It hands the token on until that has made its passes. Then it ends, and the others when they are
// given -1.
func ringOf(n, passes int, put func(at, left int), take func(at int) int, begin func(member func()), ready func()) time.Duration {
	over := promise.New[time.Duration]()
	var start time.Time
	for i := range n {
		begin(func() {
			next := (i + 1) % n
			for left := take(i); left >= 0; left = take(i) {
				if left == 0 {
					_ = over.Fill(time.Since(start))
					return
				}
				put(next, left-1)
			}
		})
	}
	ready()
	runtime.GC()
	start = time.Now()
	put(0, passes)
	took := must(over.Await(bg))
	for i := range n {
		put(i, -1)
	}
	return took
}

func ofMVars(n int) (put func(at, left int), take func(at int) int) {
	all := make([]mvar.MVar[int], n)
	return func(at, left int) { ok(all[at].Put(bg, left)) }, func(at int) int { return must(all[at].Take(bg)) }
}

func ofChannels(n int) (put func(at, left int), take func(at int) int) {
	all := make([]chan int, n)
	for i := range all {
		all[i] = make(chan int, 1)
	}
	return func(at, left int) { all[at] <- left }, func(at int) int { return <-all[at] }
}

func ringTasks(n, passes int) (took time.Duration) {
	inFifo(func() {
		here := suspend.Here()
		put, take := ofMVars(n)
		took = ringOf(n, passes, put, take, func(f func()) { ok(here.Go(f)) }, suspend.Yield)
	})
	return took
}

func ringGoroutines(n, passes int) time.Duration { return onGoroutines(n, passes, ofMVars) }

func ringChannels(n, passes int) time.Duration { return onGoroutines(n, passes, ofChannels) }

func onGoroutines(n, passes int, of func(n int) (put func(at, left int), take func(at int) int)) time.Duration {
	var all, began sync.WaitGroup
	began.Add(n)
	defer all.Wait()
	put, take := of(n)
	return ringOf(n, passes, put, take, func(f func()) { all.Go(func() { began.Done(); f() }) }, began.Wait)
}
