package main

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/alitto/pond/v2"
	"github.com/braidgo/braid/lazy"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/promise"
	"github.com/panjf2000/ants/v2"
	concpool "github.com/sourcegraph/conc/pool"
	"golang.org/x/sync/errgroup"
)

// This file contains the rows for locks, promises, lazy values, pools, and groups of tasks.

// lockFree increments a counter under an uncontended lock. The loops are written out, because a call of the function times would cost a
// nanosecond here.
func lockFree(*bench) (ours, peer work) {
	var m mutex.Mutex
	var std sync.Mutex
	ctx, count := context.Background(), 0
	return func(n int) {
			for range n {
				_ = m.Lock(ctx)
				count++
				m.Unlock()
			}
		}, func(n int) {
			for range n {
				std.Lock()
				count++
				std.Unlock()
			}
		}
}

// eight divides n operations among eight goroutines. At first all goroutines wait for the lock; otherwise it would depend on chance whether
// they ever compete. The time to start the goroutines is not counted. The indirect calls of lock and unlock are counted on both sides.
func eight(lock, unlock func()) work {
	return func(n int) {
		count := 0
		ended := make(chan struct{})
		lock()
		go func() {
			split(n, 8, func(int, int) { lock(); count++; unlock() })
			close(ended)
		}()
		time.Sleep(time.Millisecond)
		restart()
		unlock()
		<-ended
		stop()
		check(count == n)
	}
}

func mutexes(ctx context.Context) (lock, unlock func()) {
	m := new(mutex.Mutex)
	return func() { ok(m.Lock(ctx)) }, m.Unlock
}

// awaiting reads a fulfilled promise, and forcing reads a forced lazy value. The peer calls a function made by sync.OnceValue. Each side
// must create its object outside the measured function, as a program would. Otherwise the compiler would inline the peer's call completely.
func awaiting(*bench) (ours, peer work) {
	p := promise.New[int]()
	p.Fill(1)
	ctx := context.Background()
	return func(n int) { total(n, func() int { v, _ := p.Await(ctx); return v }) }, calling()
}

func forcing(*bench) (ours, peer work) {
	l := lazy.New(func(context.Context) (int, error) { return 1, nil }, lazy.Restart)
	ctx := context.Background()
	must(l.Force(ctx))
	return func(n int) { total(n, func() int { v, _ := l.Force(ctx); return v }) }, calling()
}

func calling() work {
	f := sync.OnceValue(func() int { return 1 })
	f()
	return func(n int) { total(n, f) }
}

// small computes for about a microsecond.
func small() {
	x := uint64(1)
	for range 1000 {
		x = x*6364136223846793005 + 1442695040888963407
	}
	check(x != 0)
}

// submitting returns a work function that submits n small tasks from one goroutine, and waits until all tasks have ended.
func submitting(submit func(f func())) work {
	return func(n int) {
		var wg sync.WaitGroup
		wg.Add(n)
		f := func() { small(); wg.Done() }
		times(n, func() { submit(f) })
		wg.Wait()
	}
}

// besidePool compares the work-stealing pool with a peer. The peer runs as many tasks in parallel as there are processors, but byGo sets no
// limit.
func besidePool(peer func(b *bench, procs int) work) func(b *bench) (ours, peer work) {
	return func(b *bench) (work, work) {
		p := b.pool(0)
		return submitting(func(f func()) { ok(p.Go(f)) }), peer(b, runtime.GOMAXPROCS(0))
	}
}

func byGo(*bench, int) work { return submitting(func(f func()) { go f() }) }

func byAnts(b *bench, procs int) work {
	p := must(ants.NewPool(procs))
	b.close(p.Release)
	return submitting(func(f func()) { ok(p.Submit(f)) })
}

func byPond(b *bench, procs int) work {
	p := pond.NewPool(procs)
	b.close(p.StopAndWait)
	return submitting(func(f func()) { ok(p.Go(f)) })
}

// byErrgroup and byConc create a group for each call, because Wait ends a group.
func byErrgroup(_ *bench, procs int) work {
	return func(n int) {
		var g errgroup.Group
		g.SetLimit(procs)
		times(n, func() { g.Go(func() error { small(); return nil }) })
		ok(g.Wait())
	}
}

func byConc(_ *bench, procs int) work {
	return func(n int) {
		p := concpool.New().WithMaxGoroutines(procs)
		times(n, func() { p.Go(small) })
		p.Wait()
	}
}

// inBatches divides n into parts of at most size, and calls f with the size of each part.
func inBatches(n, size int, f func(part int)) {
	for ; n > 0; n -= size {
		f(min(size, n))
	}
}
