package stage_test

import (
	"context"
	"testing"

	"github.com/braidgo/braid/internal/testrig/processor"
	"github.com/braidgo/braid/stage"
)

func BenchmarkSubmit1(b *testing.B) {
	defer perCPU(b)()
	one := stage.New("one", double, stage.Options{Queue: 100})
	b.ReportAllocs()
	for b.Loop() {
		_ = one.Submit(bg, 1)
	}
	one.Close(bg)
}

func BenchmarkSubmit10(b *testing.B) {
	defer perCPU(b)()
	ten := stage.Flow[int, int](stage.New("one", double, stage.Options{Queue: 100}))
	for range 9 {
		ten = stage.Pipe(ten, stage.New("one", double, stage.Options{Queue: 100}))
	}
	b.ReportAllocs()
	for b.Loop() {
		_ = ten.Submit(bg, 1)
	}
}

func chans(ctx context.Context, n int) (in chan int, done chan struct{}) {
	in = make(chan int, 100)
	from := in
	for range n {
		to := make(chan int, 100)
		go func(from, to chan int) {
			for {
				select {
				case v, ok := <-from:
					if !ok {
						close(to)
						return
					}
					v, _ = double(ctx, v)
					select {
					case to <- v:
					case <-ctx.Done():
						return
					}
				case <-ctx.Done():
					return
				}
			}
		}(from, to)
		from = to
	}
	done = make(chan struct{})
	go func() {
		for range from {
		}
		close(done)
	}()
	return in, done
}

func benchChan(b *testing.B, n int) {
	defer perCPU(b)()
	ctx, stop := context.WithCancel(bg)
	defer stop()
	in, done := chans(ctx, n)
	for b.Loop() {
		select {
		case in <- 1:
		case <-ctx.Done():
		}
	}
	close(in)
	<-done
}
func BenchmarkChan1(b *testing.B)  { benchChan(b, 1) }
func BenchmarkChan10(b *testing.B) { benchChan(b, 10) }
func BenchmarkDoInline(b *testing.B) {
	defer perCPU(b)()
	one := stage.New("one", double, stage.Options{Queue: 100})
	b.ReportAllocs()
	for b.Loop() {
		_, _ = one.Do(bg, 1)
	}
}

func perCPU(b *testing.B) func() {
	start := processor.Used()
	return func() { b.ReportMetric(float64(processor.Used()-start)/float64(b.N), "cpu-ns/op") }
}
