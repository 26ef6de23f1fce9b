package main

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/suspend"
)

// One value handed over is an operation: a put and a take, by two. Starting and ending the two is counted, once for
// all values. The contexts are those of the context package, and are not cancelled.
var mvarRows = often([]row{
	pair("mvar-serial", "channel of one, two goroutines", 0.80, 0.40, func() (ours, peer func(int)) {
		return oneFifo(context.Background()), channel
	}),
	pair("mvar-serial-ctx", "select of a channel of one and ctx.Done", 0.45, 0.20, func() (ours, peer func(int)) {
		ctx := cancellable()
		return oneFifo(ctx), channelOr(ctx)
	}),
	// The two schedulers run on goroutines of their own, not locked to threads.
	{id: "mvar-parallel", against: "channel of one, two goroutines", unit: "ns", must: 1.5, aim: 1.0, open: func(mode) (*sides, error) {
		return &sides{ours: onProcs(2, timed(twoFifos(context.Background()))), peer: onProcs(2, timed(channel))}, nil
	}},
	pair("mvar-goroutine", "select of a channel of one and ctx.Done", 1.0, 0.75, func() (ours, peer func(int)) {
		ctx := cancellable()
		return func(n int) {
			var m mvar.MVar[int]
			both(func() { puts(ctx, &m, n) }, func() { takes(ctx, &m, n) })
		}, channelOr(ctx)
	}),
})

// often measures rows in more rounds, whose sides have more than one speed.
func often(rows []row) []row {
	for i := range rows {
		rows[i].rounds = 54
	}
	return rows
}

// onProcs is s with GOMAXPROCS as asked for.
func onProcs(n int, s side) side {
	return func(d time.Duration) (float64, error) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
		return s(d)
	}
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

func twoFifos(ctx context.Context) func(int) {
	return func(n int) {
		var m mvar.MVar[int]
		both(func() { inFifo(func() { puts(ctx, &m, n) }) }, func() { inFifo(func() { takes(ctx, &m, n) }) })
	}
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
