package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braidgo/braid/adapters/workstealing"
)

// An operation is an empty task that is begun, and waited for, beside a fork-join of a minute: fib(50) with forks down to fib(20), a worker
// for each processor. The peer has a goroutine for each fork. Twenty tasks are a round, a few milliseconds apart, when the fork-join has
// reached all processors.
var fairnessRows = []row{
	{id: "fork-fairness", against: "go + WaitGroup", unit: "ns", rounds: 8, cold: true, open: func(m mode) (*sides, error) {
		p := workstealing.New(workstealing.Options{})
		pool = p
		pause := time.Duration(m.of(3, 0)) * time.Millisecond
		tasks := m.of(20, 1)
		ours := func(time.Duration) (float64, error) {
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan struct{})
			must(0, p.Go(func() {
				_, _ = fibCut(ctx, 50)
				close(ended)
			}))
			took := emptyTasks(tasks, pause, func(f func()) { must(0, p.Go(f)) })
			cancel()
			<-ended
			return took, nil
		}
		peer := func(time.Duration) (float64, error) {
			var stop atomic.Bool
			ended := make(chan struct{})
			go func() {
				fibGoCut(&stop, 50)
				close(ended)
			}()
			took := emptyTasks(tasks, pause, func(f func()) { go f() })
			stop.Store(true)
			<-ended
			return took, nil
		}
		return &sides{ours: ours, peer: peer, close: func() { must(0, p.Close()) }}, nil
	}},
}

// emptyTasks returns how long one of n tasks takes, in nanoseconds.
func emptyTasks(n int, pause time.Duration, begin func(f func())) float64 {
	time.Sleep(5 * pause)
	var took time.Duration
	for range n {
		time.Sleep(pause)
		start := time.Now()
		done := make(chan struct{})
		begin(func() { close(done) })
		<-done
		took += time.Since(start)
	}
	return float64(took) / float64(n)
}

func fibGoCut(stop *atomic.Bool, n int) int {
	if stop.Load() {
		return 0
	}
	if n <= 20 {
		return fibSerial(n)
	}
	var wg sync.WaitGroup
	var y int
	wg.Go(func() { y = fibGoCut(stop, n-2) })
	x := fibGoCut(stop, n-1)
	wg.Wait()
	return x + y
}
