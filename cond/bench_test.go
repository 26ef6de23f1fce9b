package cond_test

import (
	"context"
	"sync"
	"testing"

	"github.com/braidgo/braid/cond"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mutex"
)

// Two tasks alternate: each waits until the other has signalled.
func BenchmarkTurns(b *testing.B) {
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	run := func(name, sched string, lock, unlock, wait, signal func()) {
		b.Run(name, func(b *testing.B) {
			turn := 0
			player := func(mine int) func() {
				return func() {
					for range b.N {
						lock()
						for turn != mine {
							wait()
						}
						turn = 1 - mine
						signal()
						unlock()
					}
				}
			}
			schedtest.Bench(b, sched, player(0), player(1))
		})
	}
	var m mutex.Mutex
	l := &m
	c := cond.New(l)
	wait := func() { _ = c.Wait(bg) }
	waitCtx := func() { _ = c.Wait(ctx) }
	run("Braid", "goroutines", l.Lock, l.Unlock, wait, c.Signal)
	run("Braid/ctx", "goroutines", l.Lock, l.Unlock, waitCtx, c.Signal)
	run("Braid/fifo", "fifo", l.Lock, l.Unlock, wait, c.Signal)
	run("Braid/fifo/ctx", "fifo", l.Lock, l.Unlock, waitCtx, c.Signal)
	var mu sync.Mutex
	ours := cond.New(&mu)
	run("Braid on sync.Mutex/ctx", "goroutines", mu.Lock, mu.Unlock, func() { _ = ours.Wait(ctx) }, ours.Signal)
	std := sync.NewCond(&mu)
	run("sync.Cond", "goroutines", mu.Lock, mu.Unlock, std.Wait, std.Signal)
	run("sync.Cond/ctx", "goroutines", mu.Lock, mu.Unlock, func() { // as in the example of context.AfterFunc
		stop := context.AfterFunc(ctx, func() {
			mu.Lock()
			defer mu.Unlock()
			std.Broadcast()
		})
		defer stop()
		std.Wait()
	}, std.Signal)
}
