package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/stm"
)

// This file contains the table of -cores: what a machine with many processors gains from each of them. docs/maintainers/analysis.md has
// one from sixteen.

// A scaling is a line of the table. Its functions do n operations on the given number of processors. The peer may be nil.
type scaling struct {
	title      string
	n          int
	ours, peer func(p *workstealing.Pool, procs, n int)
}

var scalings = []scaling{
	{"fib(27) with forks everywhere : goroutines, per fork", 317_810, func(p *workstealing.Pool, _, n int) {
		forking.pool, forking.cut = p, 0
		inTask(p, func() { must(fib(bg, forkingTimes(n))) })
	}, func(_ *workstealing.Pool, _, n int) {
		forking.cut = 0
		fibGo(forkingTimes(n))
	}},
	{"For, steps of 1 µs", 100_000, func(p *workstealing.Pool, _, n int) {
		ok(workstealing.For(bg, p, 0, n, 0, func(_ context.Context, lo, hi int) error { times(hi-lo, small); return nil }))
	}, nil},
	{"Pool.Go of tasks of 1 µs from one goroutine : go", 100_000, goFrom(1, true), goFrom(1, false)},
	{"the same from four goroutines", 100_000, goFrom(4, true), goFrom(4, false)},
	{"the same from a task on each processor : a goroutine", 100_000, startedBy(func(p *workstealing.Pool, f func()) { ok(p.Go(f)) }),
		startedBy(func(_ *workstealing.Pool, f func()) { go f() })},
	{"a transaction of two of 1024 Vars : two of 1024 ints and a lock", 100_000, func(_ *workstealing.Pool, procs, n int) {
		vars := make([]*stm.Var[int], 1024)
		for i := range vars {
			vars[i] = stm.NewVar(0)
		}
		split(n, procs, func(int, int) {
			a, b := vars[rand.IntN(len(vars))], vars[rand.IntN(len(vars))]
			atomically(func(tx *stm.Tx) error { a.Set(tx, a.Get(tx)-1); b.Set(tx, b.Get(tx)+1); return nil })
		})
	}, func(_ *workstealing.Pool, procs, n int) {
		var mu sync.Mutex
		vars := make([]int, 1024)
		split(n, procs, func(int, int) {
			a, b := rand.IntN(len(vars)), rand.IntN(len(vars))
			mu.Lock()
			vars[a]--
			vars[b]++
			mu.Unlock()
		})
	}},
	{"lock, unlock, 1 µs without the lock, mutex.Mutex : sync.Mutex", 100_000, locking(ourLock, small), locking(theirLock, small)},
	{"lock, unlock", 200_000, locking(ourLock, func() {}), locking(theirLock, func() {})},
}

// forkingTimes returns the number whose fib forks n times or a little more often.
func forkingTimes(n int) int {
	of := 1
	for a, b := 1, 1; b <= n; of++ {
		a, b = b, a+b
	}
	return of
}

// goFrom starts small tasks from some goroutines, in p or as goroutines, and waits for them.
func goFrom(from int, inPool bool) func(p *workstealing.Pool, procs, n int) {
	return func(p *workstealing.Pool, _, n int) {
		var ended sync.WaitGroup
		ended.Add(n)
		f := func() { small(); ended.Done() }
		split(n, from, func(int, int) {
			if inPool {
				ok(p.Go(f))
			} else {
				go f()
			}
		})
		ended.Wait()
	}
}

// startedBy starts small tasks from as many tasks as there are processors, and waits for them.
func startedBy(start func(p *workstealing.Pool, f func())) func(p *workstealing.Pool, procs, n int) {
	return func(p *workstealing.Pool, procs, n int) {
		var ended sync.WaitGroup
		ended.Add(n)
		f := func() { small(); ended.Done() }
		for i := range procs {
			start(p, func() { times((n+i)/procs, func() { start(p, f) }) })
		}
		ended.Wait()
	}
}

func ourLock() sync.Locker   { return new(mutex.Mutex) }
func theirLock() sync.Locker { return new(sync.Mutex) }

func locking(lock func() sync.Locker, away func()) func(p *workstealing.Pool, procs, n int) {
	return func(_ *workstealing.Pool, procs, n int) {
		mu := lock()
		split(n, procs, func(int, int) { mu.Lock(); mu.Unlock(); away() })
	}
}

// tableOfCores writes the table, in nanoseconds for each operation, ours : the peer's. A cell is the least of as many rounds as fit into the
// time for the whole table; ours and the peer alternate.
func tableOfCores(to io.Writer, most int, limit time.Duration, tiny bool) {
	var all []int
	for procs := 1; procs < most; procs *= 2 {
		all = append(all, procs)
	}
	all = append(all, most)
	fmt.Fprint(to, "| |")
	for _, procs := range all {
		fmt.Fprintf(to, " %d |", procs)
	}
	fmt.Fprint(to, "\n|---|")
	for range all {
		fmt.Fprint(to, "---|")
	}
	fmt.Fprintln(to)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	each := limit / time.Duration(len(all)*len(scalings))
	for _, s := range scalings {
		fmt.Fprintf(to, "| %s |", s.title)
		for _, procs := range all {
			runtime.GOMAXPROCS(procs)
			fmt.Fprintf(to, " %s |", s.cell(procs, each, tiny))
		}
		fmt.Fprintln(to)
	}
}

// cell measures s for the given time, but once at least.
func (s scaling) cell(procs int, limit time.Duration, tiny bool) string {
	p := workstealing.New(workstealing.Options{Workers: procs})
	defer p.Close()
	n := s.n
	if tiny {
		n = 100
	}
	least := [2]time.Duration{}
	for begin := time.Now(); least[0] == 0 || time.Since(begin) < limit; {
		for i, f := range []func(*workstealing.Pool, int, int){s.ours, s.peer} {
			if f == nil {
				continue
			}
			start := time.Now()
			f(p, procs, n)
			if took := time.Since(start); least[i] == 0 || took < least[i] {
				least[i] = took
			}
		}
	}
	cell := fmt.Sprintf("%.0f", float64(least[0].Nanoseconds())/float64(s.n))
	if s.peer != nil {
		cell += fmt.Sprintf(" : %.0f", float64(least[1].Nanoseconds())/float64(s.n))
	}
	return cell
}
