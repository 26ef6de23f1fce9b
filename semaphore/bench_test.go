package semaphore_test

import (
	"context"
	"testing"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/semaphore"
	xsync "golang.org/x/sync/semaphore"
)

func BenchmarkAcquire(b *testing.B) {
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	b.Run("Braid", func(b *testing.B) {
		s := semaphore.New(2)
		for range b.N {
			_ = s.Acquire(bg, 1)
			s.Release(1)
		}
	})
	b.Run("Braid/ctx", func(b *testing.B) {
		s := semaphore.New(2)
		for range b.N {
			_ = s.Acquire(ctx, 1)
			s.Release(1)
		}
	})
	b.Run("x/sync", func(b *testing.B) {
		s := xsync.NewWeighted(2)
		for range b.N {
			_ = s.Acquire(bg, 1)
			s.Release(1)
		}
	})
	b.Run("x/sync/ctx", func(b *testing.B) {
		s := xsync.NewWeighted(2)
		for range b.N {
			_ = s.Acquire(ctx, 1)
			s.Release(1)
		}
	})
	b.Run("channel/ctx", func(b *testing.B) {
		c := make(chan struct{}, 2)
		for range b.N {
			select {
			case c <- struct{}{}:
			case <-ctx.Done():
			}
			<-c
		}
	})
}

// Eight tasks share two permits, and hold them until the others have queued.
func BenchmarkAcquireQueued(b *testing.B) {
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	run := func(name, sched string, acquire, release func()) {
		b.Run(name, func(b *testing.B) {
			schedtest.Share(b, sched, 8, func(n int) { schedtest.Rounds(n, acquire, release) })
		})
	}
	s := semaphore.New(2)
	release := func() { s.Release(1) }
	run("Braid", "goroutines", func() { _ = s.Acquire(bg, 1) }, release)
	run("Braid/ctx", "goroutines", func() { _ = s.Acquire(ctx, 1) }, release)
	run("Braid/fifo", "fifo", func() { _ = s.Acquire(bg, 1) }, release)
	run("Braid/fifo/ctx", "fifo", func() { _ = s.Acquire(ctx, 1) }, release)
	x := xsync.NewWeighted(2)
	run("x/sync", "goroutines", func() { _ = x.Acquire(bg, 1) }, func() { x.Release(1) })
	run("x/sync/ctx", "goroutines", func() { _ = x.Acquire(ctx, 1) }, func() { x.Release(1) })
	c := make(chan struct{}, 2)
	run("channel/ctx", "goroutines", func() {
		select {
		case c <- struct{}{}:
		case <-ctx.Done():
		}
	}, func() { <-c })
}
