package latch_test

import (
	"context"
	"sync"
	"testing"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/suspend"
)

// A task starts four tasks and waits for them.
func BenchmarkWait(b *testing.B) {
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	run := func(name, sched string, ctx context.Context) {
		b.Run(name, func(b *testing.B) {
			schedtest.Bench(b, sched, func() {
				on := suspend.Here()
				for range b.N {
					l := latch.New(4)
					for range 4 {
						_ = on.Go(l.CountDown)
					}
					_ = l.Wait(ctx)
				}
			})
		})
	}
	run("Braid", "goroutines", bg)
	run("Braid/ctx", "goroutines", ctx)
	run("Braid/fifo", "fifo", bg)
	run("Braid/fifo/ctx", "fifo", ctx)
	b.Run("sync.WaitGroup", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			var wg sync.WaitGroup
			wg.Add(4)
			for range 4 {
				go wg.Done()
			}
			wg.Wait()
		}
	})
	b.Run("sync.WaitGroup/ctx", func(b *testing.B) { // waits on a goroutine of its own
		b.ReportAllocs()
		for range b.N {
			var wg sync.WaitGroup
			wg.Add(4)
			for range 4 {
				go wg.Done()
			}
			done := make(chan struct{})
			go func() { wg.Wait(); close(done) }()
			select {
			case <-done:
			case <-ctx.Done():
			}
		}
	})
}

// Four tasks meet at a barrier.
func BenchmarkBarrier(b *testing.B) {
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	run := func(name, sched string, wait func()) {
		b.Run(name, func(b *testing.B) {
			party := func() {
				for range b.N {
					wait()
				}
			}
			schedtest.Bench(b, sched, party, party, party, party)
		})
	}
	bar := latch.NewBarrier(4)
	run("Braid", "goroutines", func() { _, _ = bar.Wait(bg) })
	run("Braid/ctx", "goroutines", func() { _, _ = bar.Wait(ctx) })
	run("Braid/fifo", "fifo", func() { _, _ = bar.Wait(bg) })
	run("Braid/fifo/ctx", "fifo", func() { _, _ = bar.Wait(ctx) })
	var mu sync.Mutex
	all := sync.NewCond(&mu)
	n, round := 0, 0
	run("sync.Cond", "goroutines", func() {
		mu.Lock()
		defer mu.Unlock()
		if n++; n == 4 {
			n, round = 0, round+1
			all.Broadcast()
			return
		}
		for mine := round; mine == round; {
			all.Wait()
		}
	})
}
