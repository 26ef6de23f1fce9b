package main

import (
	"context"
	"runtime"
	"sync"

	"github.com/alitto/pond/v2"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/suspend"
	"github.com/panjf2000/ants/v2"
	"github.com/sourcegraph/conc/iter"
	concpool "github.com/sourcegraph/conc/pool"
	"golang.org/x/sync/errgroup"
)

// This file contains the rows for starting tasks, for forks, and for pools and groups of tasks.

// spawnFifo returns a work function that starts n tasks in batches. The tasks end at once. The time to start the fifo is counted, once for
// all tasks.
func spawnFifo(batch int) work {
	return func(n int) {
		ended := 0
		inFifo(func() {
			here := suspend.Here()
			one := func() { ended++ }
			for left := n; left > 0; left -= batch {
				times(min(batch, left), func() { ok(here.Go(one)) })
				suspend.Yield() // runs the new tasks
			}
		})
		check(ended == n)
	}
}

func spawnGo(batch int) work {
	return func(n int) {
		var wg sync.WaitGroup
		one := func() { wg.Done() }
		for ; n > 0; n -= batch {
			times(min(batch, n), func() { wg.Add(1); go one() })
			wg.Wait()
		}
	}
}

// forking is shared by all forks, so that their closures need not capture the pool.
var forking struct {
	pool *workstealing.Pool
	cut  int // fib(n) is computed without forks for n up to cut
}

// forks sets the pool of fib, and the cut-off of fib and fibGo. The returned function runs f in a task of the pool.
func (b *bench) forks(workers, cut int) (inTasks func(f func())) {
	forking.pool, forking.cut = b.pool(workers), cut
	return func(f func()) { inTask(forking.pool, f) }
}

func fib(ctx context.Context, n int) (int, error) {
	if n < 2 {
		return n, nil
	}
	if n <= forking.cut {
		return fibSerial(n), nil
	}
	x, y, err := workstealing.Join(ctx, forking.pool,
		func(ctx context.Context) (int, error) { return fib(ctx, n-1) },
		func(ctx context.Context) (int, error) { return fib(ctx, n-2) })
	return x + y, err
}

func fibGo(n int) int {
	switch {
	case n < 2:
		return n
	case n <= forking.cut:
		return fibSerial(n)
	}
	var wg sync.WaitGroup
	var y int
	wg.Add(1)
	go func() {
		defer wg.Done()
		y = fibGo(n - 2)
	}()
	x := fibGo(n - 1)
	wg.Wait()
	return x + y
}

func fibSerial(n int) int {
	if n < 2 {
		return n
	}
	return fibSerial(n-1) + fibSerial(n-2)
}

// forksOf25 is the number of forks in fib(25) without a cut-off. The row fork repeats fib(25), with one worker per processor.
const forksOf25 = 121392

func forkAll(b *bench) (ours, peer side) {
	inTasks := b.forks(0, 0)
	return b.works(again(func() { inTasks(func() { check(must(fib(bg, 25)) == 75025) }) }),
		again(func() { check(fibGo(25) == 75025) }), forksOf25)
}

// speedup compares a parallel with a sequential computation of fib(40). The parallel computation forks down to fib(20), on two workers.
func speedup(b *bench) (ours, peer side) {
	n, want := b.of(40, 24), b.of(102334155, 46368)
	inTasks := b.forks(2, 20)
	return b.works(func(turns int) { inTasks(func() { times(turns, func() { check(must(fib(bg, n)) == want) }) }) },
		again(func() { check(fibSerial(n) == want) }), 1)
}

// keptTasks is the number of tasks that wait in each Run. Each Run reuses the coroutines of earlier Runs.
const keptTasks = 5000

func keptCoroutines(b *bench) (ours, peer side) {
	waiting := b.of(keptTasks, 50)
	return b.works(again(func() {
		ended := 0
		ok(fifo.Run(bg, func(ctx context.Context) error {
			var gate mvar.MVar[struct{}]
			times(waiting, func() { ok(suspend.Here().Go(func() { must(gate.Read(ctx)); ended++ })) })
			suspend.Yield()
			return gate.Put(ctx, struct{}{})
		}))
		check(ended == waiting)
	}), again(func() {
		gate := make(chan struct{})
		var all sync.WaitGroup
		times(waiting, func() { all.Go(func() { <-gate }) })
		close(gate)
		all.Wait()
	}), keptTasks)
}

// small computes for about a microsecond.
func small() {
	x := uint64(1)
	for range 1000 {
		x = x*6364136223846793005 + 1442695040888963407
	}
	check(x != 0)
}

// A submitter makes a work function that submits tasks to a scheduler.
type submitter func(submit func(f func())) work

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

// submittingDeep is like submitting, but each task uses 16 KB of stack, and at most 64 tasks run or are queued.
func submittingDeep(submit func(f func())) work {
	return func(n int) {
		var wg sync.WaitGroup
		wg.Add(n)
		permits := make(chan struct{}, 64)
		f := func() { check(deep(16) == 16*17/2); <-permits; wg.Done() }
		times(n, func() { permits <- struct{}{}; submit(f) })
		wg.Wait()
	}
}

// deep uses n KB of stack.
//
//go:noinline
func deep(n int) int {
	var frame [1 << 10]byte
	frame[n] = byte(n)
	if n == 0 {
		return 0
	}
	return deep(n-1) + int(frame[n])
}

// besidePool compares the work-stealing pool with a peer. The peer runs as many tasks in parallel as there are processors, but byGo sets no
// limit.
func besidePool(peer func(b *bench, procs int, by submitter) work) opener {
	return pools(peer, submitting)
}

// besidePoolDeep is like besidePool, but the tasks use 16 KB of stack. The peers have as many goroutines as tasks are submitted at a time.
func besidePoolDeep(peer func(b *bench, procs int, by submitter) work) opener {
	return pools(func(b *bench, _ int, by submitter) work { return peer(b, 64, by) }, submittingDeep)
}

func pools(peer func(b *bench, procs int, by submitter) work, by submitter) opener {
	return func(b *bench) (side, side) {
		p := b.pool(0)
		return b.works(by(func(f func()) { ok(p.Go(f)) }), peer(b, runtime.GOMAXPROCS(0), by), 1)
	}
}

func byGo(_ *bench, _ int, by submitter) work { return by(func(f func()) { go f() }) }

func byAnts(b *bench, procs int, by submitter) work {
	p := must(ants.NewPool(procs))
	b.close(p.Release)
	return by(func(f func()) { ok(p.Submit(f)) })
}

func byPond(b *bench, procs int, by submitter) work {
	p := pond.NewPool(procs)
	b.close(p.StopAndWait)
	return by(func(f func()) { ok(p.Go(f)) })
}

// byErrgroup and byConc create a group for each call, because Wait ends a group.
func byErrgroup(_ *bench, procs int, _ submitter) work {
	return func(n int) {
		var g errgroup.Group
		g.SetLimit(procs)
		times(n, func() { g.Go(func() error { small(); return nil }) })
		ok(g.Wait())
	}
}

func byConc(_ *bench, procs int, _ submitter) work {
	return func(n int) {
		p := concpool.New().WithMaxGoroutines(procs)
		times(n, func() { p.Go(small) })
		p.Wait()
	}
}

// loops compares loops over a slice of length n, whose iterations are small tasks. Both libraries divide the loop among their workers
// themselves.
func loops(b *bench) (ours, peer side) {
	p := b.pool(0)
	return b.works(func(n int) {
		data := make([]int, n)
		ok(workstealing.For(bg, p, 0, n, 0, func(_ context.Context, lo, hi int) error {
			for i := range data[lo:hi] {
				small()
				data[lo+i]++
			}
			return nil
		}))
	}, func(n int) { iter.ForEach(make([]int, n), func(v *int) { small(); *v++ }) }, 1)
}
