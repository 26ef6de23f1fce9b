package workstealing_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/promise"
)

var bg = context.Background()

// forks is the number of forks of fib(25) without cut-off.
const forks = 242784 / 2

func BenchmarkFork(b *testing.B) {
	perFork := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/forks, "ns/fork")
	}
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprint("Braid/", workers), func(b *testing.B) {
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
	b.Run("go", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			if v := fibGo(25); v != 75025 {
				b.Error(v)
			}
		}
		perFork(b)
	})
}

// pool is what fib runs on. It is global, because another captured variable would double the cost of each closure.
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

// The two functions do nothing and capture nothing, so that only Join is measured.
func BenchmarkJoin(b *testing.B) {
	b.ReportAllocs()
	p := workstealing.New(workstealing.Options{Workers: 1})
	defer p.Close()
	nothing := func(context.Context) (int, error) { return 0, nil }
	in(p, func() {
		for range b.N {
			_, _, _ = workstealing.Join(bg, p, nothing, nothing)
		}
	})
}

func BenchmarkFib40(b *testing.B) {
	b.Run("Braid/2", func(b *testing.B) {
		p := workstealing.New(workstealing.Options{Workers: 2})
		defer p.Close()
		in(p, func() {
			for range b.N {
				_, _ = fibCut(bg, p, 40)
			}
		})
	})
	b.Run("sequential", func(b *testing.B) {
		for range b.N {
			_ = fibSerial(40)
		}
	})
}

// A thousand tasks are started, and then awaited.
func BenchmarkSpawnMany(b *testing.B) {
	const batch = 1000
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprint("Braid/", workers), func(b *testing.B) {
			b.ReportAllocs()
			p := workstealing.New(workstealing.Options{Workers: workers})
			defer p.Close()
			in(p, func() {
				for i := 0; i < b.N; i += batch {
					var left atomic.Int64
					var all promise.Promise[int]
					left.Store(batch)
					one := func() {
						if left.Add(-1) == 0 {
							_ = all.Fill(0)
						}
					}
					for range batch {
						_ = p.Go(one)
					}
					_, _ = all.Await(bg)
				}
			})
		})
	}
	b.Run("go", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; i < b.N; i += batch {
			var wg sync.WaitGroup
			wg.Add(batch)
			one := func() { wg.Done() }
			for range batch {
				go one()
			}
			wg.Wait()
		}
	})
}

// One task is started and awaited at a time.
func BenchmarkSpawnOne(b *testing.B) {
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprint("Braid/", workers), func(b *testing.B) {
			b.ReportAllocs()
			p := workstealing.New(workstealing.Options{Workers: workers})
			defer p.Close()
			in(p, func() {
				for range b.N {
					var done promise.Promise[int]
					_ = p.Go(func() { _ = done.Fill(1) })
					_, _ = done.Await(bg)
				}
			})
		})
	}
	b.Run("go", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			var wg sync.WaitGroup
			wg.Add(1)
			go func() { wg.Done() }()
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
