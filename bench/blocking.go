package main

import (
	"context"
	"sync"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/suspend"
)

var blockingRows = []row{
	// A transaction of a thousand that begin at once is an operation: Begin, a query of two milliseconds and Commit over four
	// connections, each in a suspend.Call of a task, against the same calls on a goroutine. The width of the loop begins at 64 each
	// time, and has to grow four times.
	{id: "blocking-transactions", against: "the same on goroutines", unit: "ns", must: 2.5, aim: 1.5, rounds: 4, open: func(m mode) (*sides, error) {
		tasks := m.of(1000, 80)
		loop, err := eventloop.New(eventloop.Options{OnStall: func([]byte) {}})
		if err != nil {
			return nil, err
		}
		native := func(f func()) error { f(); return nil }
		onLoop := func(f func()) error { return suspend.Blocking(context.Background(), f) }
		return &sides{
			ours:  timedWhole(tasks, transactions(tasks, loop, onLoop)),
			peer:  timedWhole(tasks, transactions(tasks, suspend.Goroutines, native)),
			close: func() { must(0, loop.Close()) },
		}, nil
	}},
}

// transactions does each step of a transaction by call, in tasks of on.
func transactions(tasks int, on suspend.Spawner, call func(func()) error) func(n int) {
	const connections = 4
	free := make(chan int, connections)
	for i := range connections {
		free <- i
	}
	return func(n int) {
		for range n / tasks {
			var all sync.WaitGroup
			all.Add(tasks)
			for range tasks {
				must(0, on.Go(func() {
					defer all.Done()
					c := 0
					must(0, call(func() { c = <-free }))
					must(0, call(func() { time.Sleep(2 * time.Millisecond) }))
					must(0, call(func() { free <- c }))
				}))
			}
			all.Wait()
		}
	}
}
