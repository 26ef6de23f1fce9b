package mvar_test

import (
	"context"
	"sync"
	"testing"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mvar"
)

// One task hands values over to 10,000 tasks in turn. By the time a task gets its value, it is in no cache.
func BenchmarkCrowd(b *testing.B) {
	run := func(name, sched string, put func(int), take func()) {
		b.Run(name, func(b *testing.B) {
			fs := []func(){func() {
				for i := range b.N {
					put(i)
				}
			}}
			for i := range 10_000 {
				n := (b.N + i) / 10_000
				fs = append(fs, func() {
					for range n {
						take()
					}
				})
			}
			schedtest.Bench(b, sched, fs...)
		})
	}
	var m mvar.MVar[int]
	run("Braid", "goroutines", func(i int) { _ = m.Put(bg, i) }, func() { _, _ = m.Take(bg) })
	run("Braid/fifo", "fifo", func(i int) { _ = m.Put(bg, i) }, func() { _, _ = m.Take(bg) })
	c := make(chan int, 1)
	run("channel", "goroutines", func(i int) { c <- i }, func() { <-c })
}

// One task modifies the value in place.
func BenchmarkModify(b *testing.B) {
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	inc := func(v int) (int, error) { return v + 1, nil }
	b.Run("Braid", func(b *testing.B) {
		m := mvar.NewFull(0)
		for range b.N {
			_ = m.Modify(bg, inc)
		}
	})
	b.Run("Braid/ctx", func(b *testing.B) {
		m := mvar.NewFull(0)
		for range b.N {
			_ = m.Modify(ctx, inc)
		}
	})
	b.Run("sync.Mutex", func(b *testing.B) {
		var mu sync.Mutex
		v := 0
		for range b.N {
			mu.Lock()
			v, _ = inc(v)
			mu.Unlock()
		}
	})
	b.Run("channel/ctx", func(b *testing.B) {
		c := make(chan int, 1)
		c <- 0
		for range b.N {
			select {
			case v := <-c:
				v, _ = inc(v)
				c <- v
			case <-ctx.Done():
			}
		}
	})
}
