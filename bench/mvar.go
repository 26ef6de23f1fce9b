package main

import (
	"context"
	"runtime"
	"sync"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/suspend"
)

// One value handed over is an operation: a put and a take, by two. Starting and ending the two is counted, once for
// all values. The contexts are those of the context package, and are not cancelled.
var mvarRows = []row{
	pair("mvar-serial", 0.80, 0.40, func() (ours, peer func(int)) {
		return oneFifo(context.Background()), channel
	}),
	pair("mvar-serial-ctx", 0.45, 0.20, func() (ours, peer func(int)) {
		ctx := cancellable()
		return oneFifo(ctx), channelOr(ctx)
	}),
	// The two schedulers run on goroutines of their own, not locked to threads.
	pair("mvar-parallel", 1.5, 1.0, func() (ours, peer func(int)) {
		if runtime.GOMAXPROCS(0) != 2 {
			runtime.GOMAXPROCS(2)
		}
		return twoFifos, channel
	}),
	pair("mvar-goroutine", 1.0, 0.75, func() (ours, peer func(int)) {
		ctx := cancellable()
		return func(n int) {
			var m mvar.MVar[int]
			both(func() { puts(ctx, &m, n) }, func() { takes(ctx, &m, n) })
		}, channelOr(ctx)
	}),
}

// cancellable is a context that could be cancelled, and is not.
func cancellable() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	uncalled = append(uncalled, cancel)
	return ctx
}

var uncalled []context.CancelFunc

func both(f, g func()) {
	var wg sync.WaitGroup
	wg.Go(f)
	wg.Go(g)
	wg.Wait()
}

func puts(ctx context.Context, m *mvar.MVar[int], n int) {
	for i := range n {
		must(0, m.Put(ctx, i))
	}
}

func takes(ctx context.Context, m *mvar.MVar[int], n int) {
	for i := range n {
		if must(m.Take(ctx)) != i {
			panic("bench: out of order")
		}
	}
}

func oneFifo(ctx context.Context) func(int) {
	return func(n int) {
		var m mvar.MVar[int]
		inFifo(func() {
			must(0, suspend.Here().Go(func() { puts(ctx, &m, n) }))
			takes(ctx, &m, n)
		})
	}
}

func twoFifos(n int) {
	var m mvar.MVar[int]
	both(
		func() { inFifo(func() { puts(context.Background(), &m, n) }) },
		func() { inFifo(func() { takes(context.Background(), &m, n) }) })
}

// inFifo runs f as the first task of a fifo, to the end of all its tasks.
func inFifo(f func()) {
	must(0, fifo.Run(context.Background(), func(context.Context) error { f(); return nil }))
}

func channel(n int) {
	c := make(chan int, 1)
	both(
		func() {
			for i := range n {
				c <- i
			}
		},
		func() {
			for i := range n {
				if <-c != i {
					panic("bench: out of order")
				}
			}
		})
}

func channelOr(ctx context.Context) func(int) {
	return func(n int) {
		c := make(chan int, 1)
		both(
			func() {
				for i := range n {
					select {
					case c <- i:
					case <-ctx.Done():
						panic("bench: cancelled")
					}
				}
			},
			func() {
				for i := range n {
					select {
					case v := <-c:
						if v != i {
							panic("bench: out of order")
						}
					case <-ctx.Done():
						panic("bench: cancelled")
					}
				}
			})
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
