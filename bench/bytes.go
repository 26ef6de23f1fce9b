package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync/atomic"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/suspend"
)

// The rows and curves for memory measure the heap and the stacks that an idle task, goroutine or actor keeps alive.

// kinds maps the name of each kind to a function that starts n tasks, goroutines or actors, and returns the number of live bytes for each.
// Each measurement runs in a new process, because the runtime never frees the descriptors of goroutines. The result of a second measurement
// in the same process would be too low.
var kinds = map[string]func(n int) float64{
	"callbacks": yielders, "tasks": yieldingTasks, "goroutines": yieldingGoroutines, inChannel: goroutinesInChannels,
	"react": actors(reacting), "receive": actors(receiving),
}

// bytesOf measures a kind in a new process, with the command bench -bytes KIND N.
func bytesOf(kind string, n int) float64 {
	// Without this setting, the runtime would choose the initial stack size from the average of earlier stacks.
	return itself[float64]([]string{"GODEBUG=adaptivestackstart=0"}, "-bytes", kind, strconv.Itoa(n))
}

// bytesHere measures a kind, in the process that bytesOf has started.
func bytesHere(args []string) any {
	if kinds[args[0]] == nil {
		ok(fmt.Errorf("%q is not a kind", args[0]))
	}
	return kinds[args[0]](must(strconv.Atoi(args[1])))
}

// paperBytes compares ten million tasks with the bytes of a task in the paper.
func paperBytes(b *bench) (ours, peer side) {
	return func() float64 { return yielders(b.of(10_000_000, 1000)) }, func() float64 { return 48 }
}

// bytesBeside compares the bytes per actor with the bytes per goroutine that waits for a channel, for 100,000 of each.
func bytesBeside(kind string) opener {
	return func(b *bench) (ours, peer side) {
		of := func(kind string) side {
			return func() float64 { return bytesOf(kind, b.of(100_000, 100)) }
		}
		return of(kind), of(inChannel)
	}
}

// threadBytes measures callbacks, tasks and goroutines. It leaves out a kind that might not fit in three fifths of the available memory,
// according to an upper bound for the bytes of each.
func threadBytes(b *bench, x float64) (all []side) {
	available := 0.0 // in KB; 0 means unknown
	_, _ = fmt.Sscanf(field("/proc/meminfo", "MemAvailable"), "%f kB", &available)
	bound := map[string]float64{"callbacks": 100, "tasks": 6 << 10, "goroutines": 3 << 10}
	for _, kind := range []string{"callbacks", "tasks", "goroutines"} {
		s := func() float64 { return bytesOf(kind, int(x)) }
		if available > 0 && x*bound[kind] > available*1024*3/5 {
			b.note(fmt.Sprintf("%.0f tasks or goroutines are too many for the memory of this machine, of which %.0f MB are available: left out.",
				x, available/1024))
			s = nil
		} else if x > 1_000_000 && kind != "callbacks" {
			b.note("More than a million tasks or goroutines are not tried, to save time.")
			s = nil
		}
		all = append(all, s)
	}
	return all
}

// liveBytes collects garbage, and returns the bytes that the heap and the stacks use.
func liveBytes() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

// yielding is shared by all yielders, so that each closure holds only its remaining turns.
var yielding struct {
	*fifo.Scheduler
	n, begun     int
	goroutines   atomic.Int64
	before, each float64
}

// yielders runs n stackless tasks on one fifo. Each task is a callback that submits its successor, like a task that yields in a loop. All
// tasks yield once. The first callback of the second turn collects garbage, and divides the growth by n.
func yielders(n int) float64 {
	y := &yielding
	y.Scheduler, y.n, y.begun = fifo.New(fifo.Options{StallAfter: -1}), n, 0
	y.before = liveBytes()
	times(n, func() { ok(y.Execute(yielder(1))) })
	ok(y.Run(bg, func(context.Context) error { return nil }))
	check(y.begun == 2*n)
	y.Scheduler = nil
	return y.each
}

func yielder(left int) func() {
	return func() {
		y := &yielding
		if y.begun++; y.begun == y.n+1 {
			y.each = (liveBytes() - y.before) / float64(y.n)
		}
		if left > 0 {
			ok(y.Execute(yielder(left - 1)))
		}
	}
}

// grown calls the function start, and returns the growth of the heap and the stacks, divided by n.
func grown(n int, start func()) float64 {
	defer debug.SetGCPercent(debug.SetGCPercent(1000))
	before := liveBytes()
	start()
	return (liveBytes() - before) / float64(n)
}

func yieldingTasks(n int) (each float64) {
	inFifo(func() {
		over, turns := false, 0
		each = grown(n, func() {
			for range n {
				ok(suspend.Here().Go(func() {
					for !over {
						turns++
						suspend.Yield()
					}
				}))
			}
			suspend.Yield()
			check(turns == n)
		})
		over = true
	})
	return each
}

// yieldingGoroutines blocks each goroutine after one yield, because a million running goroutines would disturb the measurement. The empty
// select blocks a goroutine without adding it to a queue. The goroutines never end, so the process must end after the measurement.
func yieldingGoroutines(n int) float64 {
	return grown(n, func() {
		times(n, func() {
			go func() { runtime.Gosched(); yielding.goroutines.Add(1); select {} }()
		})
		for yielding.goroutines.Load() < int64(n) {
			runtime.Gosched()
		}
	})
}

func goroutinesInChannels(n int) float64 {
	all := []chan int{}
	defer runtime.KeepAlive(&all)
	return grown(n, func() {
		for i := range n {
			c := make(chan int, 1)
			all = append(all, c)
			go func() {
				for m := range c {
					use(m + i)
				}
			}()
		}
		times(100, runtime.Gosched)
	})
}

func actors(wait way) func(n int) float64 {
	return func(n int) (each float64) {
		inFifo(func() {
			all := []actor.Ref[int]{}
			each = grown(n, func() {
				upTo(n, func(i int) {
					all = append(all, actor.Spawn(bg, suspend.Here(), func(ctx context.Context, self *actor.Self[int]) error {
						return wait(ctx, self, func(m int) error { use(m + i); return nil })
					}, actor.Options[int]{}))
					suspend.Yield()
				})
			})
			for _, r := range all {
				r.Stop()
			}
		})
		return each
	}
}

// use keeps n alive, so that the compiler does not eliminate the computation of n.
func use(n int) { runtime.KeepAlive(n) }
