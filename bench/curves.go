package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"

	"github.com/braidgo/braid/suspend"
)

func curves() []curve {
	return slices.Concat([]curve{mvarTable, cancelPercent, threadBytes, waitBytes, ring, stageTasks, herd}, systemCurves)
}

// Table 6.1 and the figures of chapter 6 are those of the thesis of Ande (2023).
var mvarTable = curve{
	id: "mvar-table", title: "Table 6.1: an MVar against native queues of one",
	about: "A value handed over, by two tasks. Serial: both on one fifo, and the goroutines with GOMAXPROCS 1. " +
		"Parallel: a fifo each on goroutines of their own, and GOMAXPROCS 2 for all.",
	x:       axis{label: "the two tasks are", names: []string{"serial", "parallel"}},
	figures: []figure{{name: "time", label: "ns per value"}},
	series:  []string{"MVar", "MVar, cancellable ctx", "channel of one", "channel of one, select with ctx.Done", "queue of one: sync.Mutex, two sync.Conds"},
	rounds:  9,
	points:  func(mode) []float64 { return []float64{0, 1} },
	open: func(m mode, x float64) (*station, error) {
		bg, ctx := context.Background(), cancellable()
		all := []func(int){oneFifo(bg), oneFifo(ctx), channel, channelOr(ctx), condQueue}
		if x == 1 {
			all[0], all[1] = twoFifos(bg), twoFifos(ctx)
		}
		s := &station{}
		for _, f := range all {
			s.sides = append(s.sides, onProcs(int(x)+1, timed(f)).once(m))
		}
		return s, nil
	},
}

// condQueue is a queue of one as it is written without channels.
func condQueue(n int) {
	var mu sync.Mutex
	filled, emptied := sync.NewCond(&mu), sync.NewCond(&mu)
	full, value := false, 0
	both(func() {
		for i := range n {
			mu.Lock()
			for full {
				emptied.Wait()
			}
			full, value = true, i
			filled.Signal()
			mu.Unlock()
		}
	}, func() {
		for i := range n {
			mu.Lock()
			for !full {
				filled.Wait()
			}
			check(value == i)
			full = false
			emptied.Signal()
			mu.Unlock()
		}
	})
}

// The three curves of Li and Zdancewic (2007) are this, disk-reads and pipes.
var threadBytes = curve{
	id: "thread-bytes", title: "Live bytes of one of n threads that yield in a loop",
	about:   "The growth of the heap and the stacks, after a collection, when all have yielded once; each time in a new process.",
	x:       axis{label: "threads", log: true},
	figures: []figure{{name: "bytes", label: "bytes per thread", log: true}},
	series:  []string{"callbacks of a fifo that submit their successors", "tasks of a fifo", "goroutines"},
	rounds:  3, cold: true,
	points: func(m mode) []float64 { return decades(m.of(1000, 100), m.of(10_000_000, 1000)) },
	open: func(m mode, x float64) (*station, error) {
		n := int(x)
		s := &station{}
		for _, kind := range []string{"callbacks", "tasks", "goroutines"} {
			s.sides = append(s.sides, bytesOf(kind, n))
		}
		s.fits(0, n, 100)
		s.fits(1, n, taskBytes)
		s.fits(2, n, taskBytes/2)
		if n > 1_000_000 {
			s.sides[1], s.sides[2] = nil, nil
			s.notes = append(s.notes, "More than a million tasks or goroutines are not tried, to save time.")
		}
		return s, nil
	},
}

// bytesArg makes a process measure threads of one kind, and print the bytes of one: the runtime never returns the
// descriptors of goroutines, so a second measurement in one process would find less.
const bytesArg = "-bytes"

func threadsBytes(args []string) error {
	if len(args) != 2 {
		return errors.New("-bytes is what the curves of threads and waits start a process with: a kind and a number")
	}
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	f, ok := map[string]func(int) float64{"callbacks": yielders, "tasks": yieldingTasks, "goroutines": yieldingGoroutines}[args[0]]
	if !ok {
		f, ok = waitKinds[args[0]]
	}
	if !ok {
		f, ok = idleKinds[args[0]]
	}
	if !ok {
		return fmt.Errorf("there are no threads and no waits %q", args[0])
	}
	_, err = fmt.Println(f(n))
	return err
}

func liveBytesAndStacks() int64 {
	runtime.GC()
	return bytesAndStacks()
}

func bytesAndStacks() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

func yieldingTasks(n int) (each float64) {
	defer debug.SetGCPercent(debug.SetGCPercent(1000))
	before := liveBytesAndStacks()
	inFifo(func() {
		here, over, turns := suspend.Here(), false, 0
		for range n {
			must(0, here.Go(func() {
				for !over {
					turns++
					suspend.Yield()
				}
			}))
		}
		suspend.Yield()
		check(turns == n)
		each = float64(liveBytesAndStacks()-before) / float64(n)
		over = true
	})
	return each
}

// yieldingGoroutines blocks the goroutines after they have yielded, without an entry in a queue, since a million that go on would disturb
// the measurement. It is for a process that ends then.
func yieldingGoroutines(n int) float64 {
	defer debug.SetGCPercent(debug.SetGCPercent(1000))
	before := liveBytesAndStacks()
	for range n {
		go func() {
			runtime.Gosched()
			yielding.goroutines.Add(1)
			select {}
		}()
	}
	for yielding.goroutines.Load() < int64(n) {
		runtime.Gosched()
	}
	return float64(liveBytesAndStacks()-before) / float64(n)
}
