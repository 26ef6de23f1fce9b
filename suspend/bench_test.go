package suspend_test

import (
	"context"
	"testing"

	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
)

// One of the two channels has a value.
func BenchmarkSelectReady(b *testing.B) {
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	run := func(name string, ctx context.Context) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			x, y := chanx.New[int](1), chanx.New[int](1)
			first, second := suspend.CaseOf(x.RecvOp()), suspend.CaseOf(y.RecvOp())
			for i := range b.N {
				_, _ = x.TrySend(i)
				_, _ = suspend.Select(ctx, first, second)
			}
		})
	}
	run("Braid", bg)
	run("Braid/ctx", ctx)
	b.Run("select", func(b *testing.B) {
		x, y := make(chan int, 1), make(chan int, 1)
		for i := range b.N {
			x <- i
			select {
			case <-x:
			case <-y:
			}
		}
	})
	b.Run("select/ctx", func(b *testing.B) {
		x, y := make(chan int, 1), make(chan int, 1)
		for i := range b.N {
			x <- i
			select {
			case <-x:
			case <-y:
			case <-ctx.Done():
			}
		}
	})
}

// Another task sends on both channels in turn. Each value meets a waiting Select.
func BenchmarkSelectWaiting(b *testing.B) {
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	run := func(name, sched string, ctx context.Context) {
		b.Run(name, func(b *testing.B) {
			x, y := chanx.New[int](0), chanx.New[int](0)
			schedtest.Bench(b, sched,
				func() {
					x, y := x, y
					for i := range b.N {
						_ = x.Send(ctx, i)
						x, y = y, x
					}
				},
				func() {
					first, second := suspend.CaseOf(x.RecvOp()), suspend.CaseOf(y.RecvOp())
					for range b.N {
						_, _ = suspend.Select(ctx, first, second)
					}
				})
		})
	}
	run("Braid", "goroutines", bg)
	run("Braid/ctx", "goroutines", ctx)
	run("Braid/fifo", "fifo", bg)
	run("Braid/fifo/ctx", "fifo", ctx)
	native := func(name string, done <-chan struct{}) {
		b.Run(name, func(b *testing.B) {
			x, y := make(chan int), make(chan int)
			schedtest.Bench(b, "goroutines",
				func() {
					x, y := x, y
					for i := range b.N {
						select {
						case x <- i:
						case <-done:
						}
						x, y = y, x
					}
				},
				func() {
					for range b.N {
						select {
						case <-x:
						case <-y:
						case <-done:
						}
					}
				})
		})
	}
	native("select", nil)
	native("select/ctx", ctx.Done())
}
