package main

import (
	"context"
	"sync"

	"github.com/braidgo/braid/mutex"
	"golang.org/x/sync/semaphore"
)

// A lock and an unlock is an operation; in between a counter goes up.
var mutexRows = []row{
	pair("mutex-free", 1.6, 1.2, func() (ours, peer func(int)) {
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
	pair("mutex-contended", 1.5, 1.0, func() (ours, peer func(int)) {
		var m mutex.Mutex
		var std sync.Mutex
		ctx := context.Background()
		return eight(func() { must(0, m.Lock(ctx)) }, m.Unlock), eight(std.Lock, std.Unlock)
	}),
	pair("mutex-ctx", 0.6, 0.2, func() (ours, peer func(int)) {
		var m mutex.Mutex
		s := semaphore.NewWeighted(1)
		ctx := cancellable()
		return eight(func() { must(0, m.Lock(ctx)) }, m.Unlock),
			eight(func() { must(0, s.Acquire(ctx, 1)) }, func() { s.Release(1) })
	}),
}

// eight goroutines share n operations. The calls through lock and unlock are counted, for both.
func eight(lock, unlock func()) func(n int) {
	return func(n int) {
		count := 0
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for range (n + i) / 8 {
					lock()
					count++
					unlock()
				}
			})
		}
		wg.Wait()
		if count != n {
			panic("bench: two held the lock")
		}
	}
}
