package main

import (
	"context"
	"sync"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/suspend"
)

var spawnRows = []row{
	// Start a task and let it end, one after the other. Starting the fifo is counted, once for all.
	pair("spawn/one", "go + WaitGroup", 0.5, 0.3, func() (ours, peer func(int)) { return spawnFifo(1), spawnGo(1) }),
	// The same, a thousand at a time.
	pair("spawn/many", "go + WaitGroup", 0.5, 0.3, func() (ours, peer func(int)) { return spawnFifo(1000), spawnGo(1000) }),

	// An operation is one fork: fib(25) without cut-off, again and again, with a worker for each processor. Starting
	// the pool is not counted.
	{id: "fork", against: "go + WaitGroup", unit: "ns", must: 0.25, aim: 0.10, open: func(mode) (*sides, error) {
		p := workstealing.New(workstealing.Options{})
		pool = p
		per := func(f func()) func(n int) {
			return func(n int) {
				for i := 0; i < n; i += forksOf25 {
					f()
				}
			}
		}
		return &sides{
			ours:  timedWhole(forksOf25, per(func() { inTask(p, func() { check(must(fib(context.Background(), 25)) == 75025) }) })),
			peer:  timedWhole(forksOf25, per(func() { check(fibGo(25) == 75025) })),
			close: func() { must(0, p.Close()) },
		}, nil
	}},

	// fib(40) is an operation, with forks down to fib(20) on two workers, and without any. Starting the pool is not counted.
	{id: "fib-speedup", against: "sequential", unit: "ns", must: 0.56, aim: 0.51, rounds: 8, open: func(m mode) (*sides, error) {
		n40 := m.of(40, 24)
		want := m.of(102334155, 46368)
		p := workstealing.New(workstealing.Options{Workers: 2})
		pool = p
		return &sides{
			ours: timed(func(n int) {
				inTask(p, func() {
					for range n {
						check(must(fibCut(context.Background(), n40)) == want)
					}
				})
			}),
			peer: timed(func(n int) {
				for range n {
					check(fibSerial(n40) == want)
				}
			}),
			close: func() { must(0, p.Close()) },
		}, nil
	}},

	// An operation is a task that waits, of 5,000 in a Run of their own. The Runs before have left their coroutines. The peer is
	// goroutines that wait for a channel.
	{id: "coroutine-kept", against: "5,000 goroutines", unit: "ns", must: 1.0, aim: 0.5, open: func(m mode) (*sides, error) {
		waiting := m.of(5000, 50)
		return &sides{
			ours: timedWhole(waiting, func(n int) {
				for ; n > 0; n -= waiting {
					ended := 0
					_ = fifo.Run(context.Background(), func(ctx context.Context) error {
						var gate mvar.MVar[struct{}]
						for range waiting {
							must(0, suspend.Here().Go(func() { must(gate.Read(ctx)); ended++ }))
						}
						suspend.Yield()
						return gate.Put(ctx, struct{}{})
					})
					check(ended == waiting)
				}
			}),
			peer: timedWhole(waiting, func(n int) {
				for ; n > 0; n -= waiting {
					gate := make(chan struct{})
					var all sync.WaitGroup
					for range waiting {
						all.Go(func() { <-gate })
					}
					close(gate)
					all.Wait()
				}
			}),
			close: func() {},
		}, nil
	}},
}

func spawnFifo(batch int) func(int) {
	return func(n int) {
		ended := 0
		inFifo(func() {
			here := suspend.Here()
			one := func() { ended++ }
			for i := 0; i < n; i += batch {
				for range min(batch, n-i) {
					must(0, here.Go(one))
				}
				suspend.Yield() // they come first
			}
		})
		check(ended == n)
	}
}

func spawnGo(batch int) func(int) {
	return func(n int) {
		var wg sync.WaitGroup
		one := func() { wg.Done() }
		for i := 0; i < n; i += batch {
			for range min(batch, n-i) {
				wg.Add(1)
				go one()
			}
			wg.Wait()
		}
	}
}

// forksOf25 is how often fib(25) without cut-off forks.
const forksOf25 = 121392

// timedWhole is timed for an f whose n are multiples of unit.
func timedWhole(unit int, f func(n int)) side {
	whole := timed(func(n int) { f(n * unit) })
	return func(d time.Duration) (float64, error) {
		v, err := whole(d)
		return v / float64(unit), err
	}
}

// inTask runs f as a task of on.
func inTask(on suspend.Spawner, f func()) {
	done := make(chan struct{})
	must(0, on.Go(func() { defer close(done); f() }))
	<-done
}

// pool is what fib runs on: captured, it would make each closure larger.
var pool *workstealing.Pool

func fib(ctx context.Context, n int) (int, error) {
	if n < 2 {
		return n, nil
	}
	x, y, err := workstealing.Join(ctx, pool,
		func(ctx context.Context) (int, error) { return fib(ctx, n-1) },
		func(ctx context.Context) (int, error) { return fib(ctx, n-2) })
	return x + y, err
}

func fibGo(n int) int {
	if n < 2 {
		return n
	}
	var wg sync.WaitGroup
	var y int
	wg.Add(1)
	go func() {
		defer wg.Done()
		y = fibGo(n - 2)
	}()
	x := fibGo(n - 1)
	wg.Wait()
	return x + y
}

func fibCut(ctx context.Context, n int) (int, error) {
	if n <= 20 {
		return fibSerial(n), nil
	}
	x, y, err := workstealing.Join(ctx, pool,
		func(ctx context.Context) (int, error) { return fibCut(ctx, n-1) },
		func(ctx context.Context) (int, error) { return fibCut(ctx, n-2) })
	return x + y, err
}

func fibSerial(n int) int {
	if n < 2 {
		return n
	}
	return fibSerial(n-1) + fibSerial(n-2)
}
