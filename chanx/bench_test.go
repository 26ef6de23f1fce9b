package chanx_test

import (
	"context"
	"testing"

	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/testrig/schedtest"
)

// One task sends into the buffer and receives from it.
func BenchmarkBuffer(b *testing.B) {
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	b.Run("Braid", func(b *testing.B) {
		c := chanx.New[int](1)
		for i := range b.N {
			_ = c.Send(bg, i)
			_, _ = c.Recv(bg)
		}
	})
	b.Run("Braid/ctx", func(b *testing.B) {
		c := chanx.New[int](1)
		for i := range b.N {
			_ = c.Send(ctx, i)
			_, _ = c.Recv(ctx)
		}
	})
	b.Run("channel", func(b *testing.B) {
		c := make(chan int, 1)
		for i := range b.N {
			c <- i
			<-c
		}
	})
	b.Run("channel/ctx", func(b *testing.B) {
		c := make(chan int, 1)
		for i := range b.N {
			select {
			case c <- i:
			case <-ctx.Done():
			}
			select {
			case <-c:
			case <-ctx.Done():
			}
		}
	})
}

// One task sends and another receives: without a buffer, so that they meet each time, and with room for 64 values.
func BenchmarkMeet(b *testing.B)   { pass(b, 0) }
func BenchmarkPass64(b *testing.B) { pass(b, 64) }

func pass(b *testing.B, capacity int) {
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	run := func(name, sched string, send func(int), recv func()) {
		b.Run(name, func(b *testing.B) {
			schedtest.Bench(b, sched,
				func() {
					for i := range b.N {
						send(i)
					}
				},
				func() {
					for range b.N {
						recv()
					}
				})
		})
	}
	c := chanx.New[int](capacity)
	run("Braid", "goroutines", func(i int) { _ = c.Send(bg, i) }, func() { _, _ = c.Recv(bg) })
	run("Braid/ctx", "goroutines", func(i int) { _ = c.Send(ctx, i) }, func() { _, _ = c.Recv(ctx) })
	run("Braid/fifo", "fifo", func(i int) { _ = c.Send(bg, i) }, func() { _, _ = c.Recv(bg) })
	run("Braid/fifo/ctx", "fifo", func(i int) { _ = c.Send(ctx, i) }, func() { _, _ = c.Recv(ctx) })
	std := make(chan int, capacity)
	run("channel", "goroutines", func(i int) { std <- i }, func() { <-std })
	run("channel/ctx", "goroutines", func(i int) {
		select {
		case std <- i:
		case <-ctx.Done():
		}
	}, func() {
		select {
		case <-std:
		case <-ctx.Done():
		}
	})
}
