package main

import (
	"context"
	"sync"
	"time"

	"github.com/braidgo/braid/mutex"
	"golang.org/x/sync/semaphore"
)

// A lock and an unlock is an operation; in between a counter goes up.
var mutexRows = []row{
	pair("mutex-free", "sync.Mutex", 1.6, 1.2, func() (ours, peer func(int)) {
		var m mutex.Mutex
		var std sync.Mutex
		ctx, count := context.Background(), 0
		return func(n int) {
				for range n {
					_ = m.Lock(ctx)
					count++
					m.Unlock()
				}
			}, func(n int) {
				for range n {
					std.Lock()
					count++
					std.Unlock()
				}
			}
	}),
	{id: "mutex-contended", against: "sync.Mutex", unit: "ns", must: 1.5, aim: 1.0, open: func(mode) (*sides, error) {
		var m mutex.Mutex
		var std sync.Mutex
		ctx := context.Background()
		return &sides{ours: eight(func() { must(0, m.Lock(ctx)) }, m.Unlock), peer: eight(std.Lock, std.Unlock)}, nil
	}},
	{id: "mutex-ctx", against: "x/sync semaphore of 1", unit: "ns", must: 0.6, aim: 0.2, open: func(mode) (*sides, error) {
		var m mutex.Mutex
		s := semaphore.NewWeighted(1)
		ctx := cancellable()
		return &sides{
			ours: eight(func() { must(0, m.Lock(ctx)) }, m.Unlock),
			peer: eight(func() { must(0, s.Acquire(ctx, 1)) }, func() { s.Release(1) }),
		}, nil
	}},
}

// eight goroutines share n operations. They all find the lock held at first: otherwise it is chance whether two ever
// meet. Starting them is not counted, the calls through lock and unlock are, for both.
func eight(lock, unlock func()) side {
	return timedBy(func(n int) time.Duration {
		count := 0
		var wg sync.WaitGroup
		lock()
		for i := range 8 {
			wg.Go(func() {
				for range (n + i) / 8 {
					lock()
					count++
					unlock()
				}
			})
		}
		time.Sleep(time.Millisecond)
		start := time.Now()
		unlock()
		wg.Wait()
		took := time.Since(start)
		check(count == n)
		return took
	})
}
