package main

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
)

// What an idle task, goroutine, wait or actor keeps alive: heap, and stacks.

// kinds measure the bytes of one of n. Each is measured in a process of its own, bench -bytes KIND N: the runtime never returns the
// descriptors of goroutines, so a second measurement in one process would find less.
var kinds = map[string]func(n int) float64{
	"callbacks": yielders, "tasks": yieldingTasks, "goroutines": yieldingGoroutines,
	"then": func(n int) float64 {
		p := promise.New[int]()
		return waits(n, func(on *fifo.Scheduler, over func()) error {
			suspend.Then(bg, p.AwaitOp(), on, func(int, error) { over() })
			return nil
		}, func() { p.Resolve(1, nil) })
	},
	"then-stm": func(n int) float64 {
		gate := stm.NewVar(false)
		op := stm.Op(func(tx *stm.Tx) (none struct{}, err error) { return none, opened(gate, tx) })
		return waits(n, func(on *fifo.Scheduler, over func()) error {
			suspend.Then(bg, op, on, func(struct{}, error) { over() })
			return nil
		}, func() { open(gate) })
	},
	"await": func(n int) float64 {
		p := promise.New[int]()
		return waits(n, func(on *fifo.Scheduler, over func()) error {
			return on.Go(func() { _, _ = p.Await(bg); over() })
		}, func() { p.Resolve(1, nil) })
	},
	"retry": func(n int) float64 {
		gate := stm.NewVar(false)
		f := func(tx *stm.Tx) error { return opened(gate, tx) }
		return waits(n, func(on *fifo.Scheduler, over func()) error {
			return on.Go(func() { _ = stm.Atomically(bg, f); over() })
		}, func() { open(gate) })
	},
	"a goroutine in a channel": goroutinesInChannels,
	"actor-bytes/react-onend": actors(func(i int) body {
		return func(_ context.Context, self *actor.Self[int]) error {
			self.OnEnd(func() { use(1) })
			return actor.Loop(func() error { return self.React(func(m int) error { use(m + i); return nil }) })
		}
	}),
	"actor-bytes/react": actors(func(i int) body {
		return func(_ context.Context, self *actor.Self[int]) error {
			return actor.Loop(func() error { return self.React(func(m int) error { use(m + i); return nil }) })
		}
	}),
	"actor-bytes/receive-closure": actors(func(i int) body {
		return func(ctx context.Context, self *actor.Self[int]) error {
			return receiving(ctx, self, func(m int) error { use(m + i); return nil })
		}
	}),
	"actor-bytes/receive": actors(func(i int) body {
		return func(_ context.Context, self *actor.Self[int]) error {
			for {
				m, err := self.Receive(context.Background())
				if err != nil {
					return err
				}
				use(m + i)
			}
		}
	}),
}

// bytesOf measures a kind in another process.
func bytesOf(kind string, n int) float64 {
	// Otherwise the runtime guesses how large a first stack has to be, from the few that there are at first.
	return itself[float64]([]string{"GODEBUG=adaptivestackstart=0"}, bytesArg, kind, strconv.Itoa(n))
}

const bytesArg = "-bytes"

// bytesHere is what such a process does.
func bytesHere(args []string) any {
	if len(args) != 2 || kinds[args[0]] == nil {
		ok(errors.New("-bytes is followed by a kind and a number, as the curves of threads and waits start it"))
	}
	return kinds[args[0]](must(strconv.Atoi(args[1])))
}

// bytesBeside compares one of 100,000 of a kind with a goroutine that waits for a channel.
func bytesBeside(kind string) func(b *bench) (ours, peer side) {
	return func(b *bench) (ours, peer side) {
		of := func(kind string) side {
			return func(time.Duration) float64 { return bytesOf(kind, b.of(100_000, 100)) }
		}
		return of(kind), of("a goroutine in a channel")
	}
}

// bytesPer is the curve of some kinds, whose maximal bytes say how many there is room for.
func bytesPer(names []string, most ...int) func(b *bench, x float64) []measurement {
	return func(b *bench, x float64) (all []measurement) {
		for _, kind := range names {
			all = append(all, one(func() float64 { return bytesOf(kind, int(x)) }))
		}
		b.fits(all, int(x), most...)
		return all
	}
}

func liveBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func liveBytesAndStacks() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// yielding is shared by the yielders, so that each has only its code and its remaining turns.
var yielding struct {
	*fifo.Scheduler
	n, begun   int
	before     int64
	goroutines atomic.Int64
	each       float64
}

// yielders are n tasks without a stack on one fifo. Each is a callback that submits its successor, as a task that yields in a loop. All
// yield once. The first of the second turn measures the growth of the heap, after a collection, divided by their number.
func yielders(n int) float64 {
	y := &yielding
	y.Scheduler, y.n, y.begun, y.before = fifo.New(fifo.Options{}), n, 0, liveBytes()
	for range n {
		ok(y.Execute(yielder(1)))
	}
	ok(y.Run(bg, func(context.Context) error { return nil }))
	check(y.begun == 2*n)
	y.Scheduler = nil
	return y.each
}

func yielder(left int) func() {
	return func() {
		y := &yielding
		if y.begun++; y.begun == y.n+1 {
			y.each = float64(liveBytes()-y.before) / float64(y.n)
		}
		if left > 0 {
			ok(y.Execute(yielder(left - 1)))
		}
	}
}

// grown is the growth of the heap and the stacks for each of n, by what start does.
func grown(n int, start func()) float64 {
	defer collecting(1000)()
	before := liveBytesAndStacks()
	start()
	return float64(liveBytesAndStacks()-before) / float64(n)
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

// yieldingGoroutines blocks the goroutines after they have yielded, without an entry in a queue, since a million that go on would disturb
// the measurement. It is for a process that ends then.
func yieldingGoroutines(n int) float64 {
	return grown(n, func() {
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
		for range 100 {
			runtime.Gosched()
		}
	})
}

// waits are n on one fifo, each begun by start. It measures, ends them, and sees that all have ended.
func waits(n int, start func(on *fifo.Scheduler, over func()) error, end func()) (each float64) {
	on, ended := fifo.New(fifo.Options{StallAfter: -1}), 0 // a collection holds it for seconds
	over := func() { ended++ }
	ok(on.Run(bg, func(context.Context) error {
		each = grown(n, func() {
			for range n {
				ok(start(on, over))
			}
			suspend.Yield()
			check(ended == 0)
		})
		end()
		return nil
	}))
	check(ended == n)
	return each
}

func opened(gate *stm.Var[bool], tx *stm.Tx) error {
	if !gate.Get(tx) {
		return stm.Retry
	}
	return nil
}

func open(gate *stm.Var[bool]) {
	atomically(func(tx *stm.Tx) error { gate.Set(tx, true); return nil })
}

type body = func(ctx context.Context, self *actor.Self[int]) error

func actors(make func(i int) body) func(n int) float64 {
	return func(n int) (each float64) {
		inFifo(func() {
			all := []actor.Ref[int]{}
			each = grown(n, func() {
				for i := range n {
					all = append(all, actor.Spawn(bg, suspend.Here(), make(i)))
					suspend.Yield()
				}
			})
			for _, r := range all {
				r.Stop()
			}
		})
		return each
	}
}

// use keeps the compiler from leaving n out.
func use(n int) { runtime.KeepAlive(n) }
