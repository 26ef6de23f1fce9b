package promise_test

import (
	"context"
	"testing"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// A task is started, and another one awaits its result.
func BenchmarkGo(b *testing.B) {
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	f := func(context.Context) (int, error) { return 1, nil }
	run := func(name, sched string, ctx context.Context) {
		b.Run(name, func(b *testing.B) {
			schedtest.Bench(b, sched, func() {
				on := suspend.Here()
				for range b.N {
					_, _ = promise.Go(ctx, on, f).Await(ctx)
				}
			})
		})
	}
	run("Braid", "goroutines", bg)
	run("Braid/ctx", "goroutines", ctx)
	run("Braid/fifo", "fifo", bg)
	run("Braid/fifo/ctx", "fifo", ctx)
	type result struct {
		v   int
		err error
	}
	b.Run("channel", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			c := make(chan result, 1)
			go func() { v, err := f(bg); c <- result{v, err} }()
			<-c
		}
	})
	b.Run("channel/ctx", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			c := make(chan result, 1)
			go func() { v, err := f(ctx); c <- result{v, err} }()
			select {
			case <-c:
			case <-ctx.Done():
			}
		}
	})
}
