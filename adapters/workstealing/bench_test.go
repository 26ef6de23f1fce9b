package workstealing_test

import (
	"context"
	"sync"
	"testing"

	"github.com/braidgo/braid/adapters/workstealing"
)

var bg = context.Background()

// forks is the number of forks of fib(25) without cut-off.
const forks = 242784 / 2

func BenchmarkFork(b *testing.B) {
	perFork := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/forks, "ns/fork")
	}
	for _, workers := range []int{1, 2} {
		b.Run(map[int]string{1: "Join/1", 2: "Join/2"}[workers], func(b *testing.B) {
			b.ReportAllocs()
			p := workstealing.New(workstealing.Options{Workers: workers})
			defer p.Close()
			pool = p
			in(p, func() {
				for range b.N {
					if v, _ := fib(bg, 25); v != 75025 {
						b.Error(v)
					}
				}
			})
			perFork(b)
		})
	}
	b.Run("Go", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			if v := fibGo(25); v != 75025 {
				b.Error(v)
			}
		}
		perFork(b)
	})
}

// pool is what fib runs on; a captured variable more in each closure would double the price of allocating it.
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

func fibCut(ctx context.Context, p *workstealing.Pool, n int) (int, error) {
	if n <= 20 {
		return fibSerial(n), nil
	}
	x, y, err := workstealing.Join(ctx, p,
		func(ctx context.Context) (int, error) { return fibCut(ctx, p, n-1) },
		func(ctx context.Context) (int, error) { return fibCut(ctx, p, n-2) })
	return x + y, err
}

func fibSerial(n int) int {
	if n < 2 {
		return n
	}
	return fibSerial(n-1) + fibSerial(n-2)
}

func BenchmarkFib40(b *testing.B) {
	b.Run("Join/2", func(b *testing.B) {
		p := workstealing.New(workstealing.Options{Workers: 2})
		defer p.Close()
		in(p, func() {
			for range b.N {
				_, _ = fibCut(bg, p, 40)
			}
		})
	})
	b.Run("Sequential", func(b *testing.B) {
		for range b.N {
			_ = fibSerial(40)
		}
	})
}

func BenchmarkSpawn(b *testing.B) {
	const batch = 1000
	b.Run("Pool", func(b *testing.B) {
		b.ReportAllocs()
		p := workstealing.New(workstealing.Options{})
		defer p.Close()
		in(p, func() {
			for i := 0; i < b.N; i += batch {
				var wg sync.WaitGroup
				wg.Add(batch)
				for range batch {
					_ = p.Go(wg.Done)
				}
				in(p, wg.Wait)
			}
		})
	})
	b.Run("Go", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; i < b.N; i += batch {
			var wg sync.WaitGroup
			wg.Add(batch)
			for range batch {
				go wg.Done()
			}
			wg.Wait()
		}
	})
}

// in runs f as a task of p.
func in(p *workstealing.Pool, f func()) {
	done := make(chan struct{})
	if err := p.Go(func() { defer close(done); f() }); err != nil {
		panic(err)
	}
	<-done
}
