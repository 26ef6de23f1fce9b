package mutex_test

//lint:file-ignore SA2001 the lock itself is tested, not what it protects

import (
	"context"
	"sync"
	"testing"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mutex"
	"golang.org/x/sync/semaphore"
)

// The lock is uncontended.
func BenchmarkLock(b *testing.B) {
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	b.Run("Braid", func(b *testing.B) {
		var m mutex.Mutex
		for range b.N {
			m.Lock()
			m.Unlock()
		}
	})
	b.Run("Braid/ctx", func(b *testing.B) {
		var m mutex.Mutex
		for range b.N {
			_ = m.LockContext(ctx)
			m.Unlock()
		}
	})
	b.Run("sync.Mutex", func(b *testing.B) {
		var m sync.Mutex
		for range b.N {
			m.Lock()
			//lint:ignore SA2001 it is what is measured
			m.Unlock()
		}
	})
	b.Run("channel/ctx", func(b *testing.B) {
		c := make(chan struct{}, 1)
		for range b.N {
			select {
			case c <- struct{}{}:
			case <-ctx.Done():
			}
			<-c
		}
	})
	b.Run("x/sync/semaphore/ctx", func(b *testing.B) {
		s := semaphore.NewWeighted(1)
		for range b.N {
			_ = s.Acquire(ctx, 1)
			s.Release(1)
		}
	})
}

// Eight tasks lock the mutex, and hold it until the others have queued.
func BenchmarkLockQueued(b *testing.B) {
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	run := func(name, sched string, lock, unlock func()) {
		b.Run(name, func(b *testing.B) {
			schedtest.Share(b, sched, 8, func(n int) { schedtest.Rounds(n, lock, unlock) })
		})
	}
	var m mutex.Mutex
	run("Braid", "goroutines", func() { m.Lock() }, m.Unlock)
	run("Braid/ctx", "goroutines", func() { _ = m.LockContext(ctx) }, m.Unlock)
	run("Braid/fifo", "fifo", func() { m.Lock() }, m.Unlock)
	run("Braid/fifo/ctx", "fifo", func() { _ = m.LockContext(ctx) }, m.Unlock)
	var std sync.Mutex
	run("sync.Mutex", "goroutines", std.Lock, std.Unlock)
	c := make(chan struct{}, 1)
	run("channel/ctx", "goroutines", func() {
		select {
		case c <- struct{}{}:
		case <-ctx.Done():
		}
	}, func() { <-c })
	s := semaphore.NewWeighted(1)
	run("x/sync/semaphore/ctx", "goroutines", func() { _ = s.Acquire(ctx, 1) }, func() { s.Release(1) })
}

func BenchmarkRLock(b *testing.B) {
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	b.Run("Braid", func(b *testing.B) {
		var m mutex.RWMutex
		for range b.N {
			m.RLock()
			m.RUnlock()
		}
	})
	b.Run("Braid/ctx", func(b *testing.B) {
		var m mutex.RWMutex
		for range b.N {
			_ = m.RLockContext(ctx)
			m.RUnlock()
		}
	})
	b.Run("sync.RWMutex", func(b *testing.B) {
		var m sync.RWMutex
		for range b.N {
			m.RLock()
			//lint:ignore SA2001 it is what is measured
			m.RUnlock()
		}
	})
}

// Eight tasks lock for reading, and in one of ten cases for writing.
func BenchmarkRLockContended(b *testing.B) {
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	run := func(name, sched string, lock, unlock, rlock, runlock func()) {
		b.Run(name, func(b *testing.B) {
			schedtest.Share(b, sched, 8, func(n int) {
				for i := range n {
					if i%10 == 0 {
						schedtest.Rounds(1, lock, unlock)
					} else {
						schedtest.Rounds(1, rlock, runlock)
					}
				}
			})
		})
	}
	var m mutex.RWMutex
	ours := func(name, sched string, ctx context.Context) {
		run(name, sched, func() { _ = m.LockContext(ctx) }, m.Unlock, func() { _ = m.RLockContext(ctx) }, m.RUnlock)
	}
	ours("Braid", "goroutines", bg)
	ours("Braid/ctx", "goroutines", ctx)
	ours("Braid/fifo", "fifo", bg)
	ours("Braid/fifo/ctx", "fifo", ctx)
	var std sync.RWMutex
	run("sync.RWMutex", "goroutines", std.Lock, std.Unlock, std.RLock, std.RUnlock)
}
