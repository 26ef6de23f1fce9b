package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

func curves() []curve {
	return slices.Concat([]curve{mvarTable, cancelPercent, threadBytes, ring, growCancel, growWake, growTasks, growSelect}, systemCurves)
}

// What has table 6.1 and the figures of chapter 6 is the thesis of Ande (2023).
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
	about:   "What the heap and the stacks have grown by, after a collection, when all have yielded once; each time in a new process.",
	x:       axis{label: "threads", log: true},
	figures: []figure{{name: "bytes", label: "bytes per thread", log: true}},
	series:  []string{"callbacks of a fifo that submit their successors", "tasks of a fifo", "goroutines"},
	rounds:  3, cold: true,
	points: func(m mode) []float64 { return decades(m.of(1000, 100), m.of(10_000_000, 1000)) },
	open: func(m mode, x float64) (*station, error) {
		n := int(x)
		s := &station{}
		for _, kind := range []string{"callbacks", "tasks", "goroutines"} {
			s.sides = append(s.sides, func() ([]float64, error) {
				out, err := itself(bytesArg, kind, strconv.Itoa(n))
				if err != nil {
					return nil, err
				}
				v, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
				return []float64{v}, err
			})
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
		return errors.New("-bytes is what the curve of threads starts a process with")
	}
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	f, ok := map[string]func(int) float64{"callbacks": yielders, "tasks": yieldingTasks, "goroutines": yieldingGoroutines}[args[0]]
	if !ok {
		return fmt.Errorf("there are no threads %q", args[0])
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

// yieldingGoroutines has them wait for ever after they have yielded, without an entry in a queue, as a million that went
// on would not let anybody measure; it is for a process that ends then.
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

// ring is after Haller and Odersky (2009).
var ring = curve{
	id: "ring", title: "A token through a ring of n processes",
	about:   "One token, 100,000 passes; making the ring and ending it is not counted.",
	x:       axis{label: "processes in the ring", log: true},
	figures: []figure{{name: "throughput", label: "passes per second"}},
	series:  []string{"MVars, Then on a fifo", "MVars, tasks of a fifo", "MVars, goroutines", "channels of one, goroutines"},
	rounds:  3, cold: true,
	points: func(m mode) []float64 {
		if m.Tiny {
			return []float64{10, 100}
		}
		return []float64{10, 100, 1000, 10_000, 100_000, 600_000}
	},
	open: func(m mode, x float64) (*station, error) {
		n := int(x)
		passes := m.of(100_000, 100)
		one := func(f func(n, passes int) time.Duration) measurement {
			return func() ([]float64, error) {
				defer debug.SetGCPercent(debug.SetGCPercent(1000))
				return []float64{float64(passes) / f(n, passes).Seconds()}, nil
			}
		}
		s := &station{sides: []measurement{one(ringThen), one(ringTasks), one(ringGoroutines), one(ringChannels)}}
		for i, each := range []int{1000, taskBytes, taskBytes, taskBytes / 2} {
			s.fits(i, n, each)
		}
		return s, nil
	},
}

func ringThen(n, passes int) (took time.Duration) {
	s := fifo.New(fifo.Options{})
	all := make([]mvar.MVar[int], n)
	bg := context.Background()
	must(0, s.Run(bg, func(context.Context) error {
		var start time.Time
		over := promise.New[struct{}]()
		for i := range n {
			next := &all[(i+1)%n]
			var pass func(int, error)
			pass = func(left int, _ error) {
				if left == 0 {
					took = time.Since(start)
					_ = over.Fill(struct{}{})
					return
				}
				check(next.TryPut(left - 1))
				suspend.Then(bg, all[i].TakeOp(), s, pass)
			}
			suspend.Then(bg, all[i].TakeOp(), s, pass)
		}
		runtime.GC()
		start = time.Now()
		check(all[0].TryPut(passes))
		_, err := over.Await(bg)
		return err
	}))
	return took
}

// member is one of a ring of tasks. It ends when the token has made its passes, the others when they are given -1.
func member(in, next *mvar.MVar[int], over func()) {
	for left := must(in.Take(context.Background())); left >= 0; left = must(in.Take(context.Background())) {
		if left == 0 {
			over()
			return
		}
		must(0, next.Put(context.Background(), left-1))
	}
}

func ringOf(n, passes int, begin func(func()), ready func()) (took time.Duration) {
	all := make([]mvar.MVar[int], n)
	over := promise.New[time.Duration]()
	var start time.Time
	for i := range n {
		begin(func() { member(&all[i], &all[(i+1)%n], func() { _ = over.Fill(time.Since(start)) }) })
	}
	ready()
	runtime.GC()
	start = time.Now()
	check(all[0].TryPut(passes))
	took = must(over.Await(context.Background()))
	for i := range all {
		check(all[i].TryPut(-1))
	}
	return took
}

func ringTasks(n, passes int) (took time.Duration) {
	inFifo(func() {
		here := suspend.Here()
		took = ringOf(n, passes, func(f func()) { must(0, here.Go(f)) }, suspend.Yield)
	})
	return took
}

func ringGoroutines(n, passes int) time.Duration {
	var all, began sync.WaitGroup
	began.Add(n)
	defer all.Wait()
	return ringOf(n, passes, func(f func()) { all.Go(func() { began.Done(); f() }) }, began.Wait)
}

func ringChannels(n, passes int) time.Duration {
	all := make([]chan int, n)
	for i := range all {
		all[i] = make(chan int, 1)
	}
	var wg, began sync.WaitGroup
	began.Add(n)
	over := make(chan time.Duration, 1)
	var start time.Time
	for i := range n {
		wg.Go(func() {
			began.Done()
			in, next := all[i], all[(i+1)%n]
			for left := <-in; left >= 0; left = <-in {
				if left == 0 {
					over <- time.Since(start)
					return
				}
				next <- left - 1
			}
		})
	}
	began.Wait()
	runtime.GC()
	start = time.Now()
	all[0] <- passes
	took := <-over
	for _, c := range all {
		c <- -1
	}
	wg.Wait()
	return took
}

var growWake = curve{
	id: "grow-wake", title: "Waking all of n waiters",
	about:   "From the call that wakes them until the last one has run, divided by n.",
	x:       axis{label: "waiters", log: true},
	figures: []figure{{name: "time", label: "ns per waiter", log: true}},
	series:  []string{"promise, Then on a fifo", "promise, tasks of a fifo", "promise, goroutines", "closed channel, goroutines", "sync.Cond, goroutines"},
	rounds:  3, cold: true,
	points: func(m mode) []float64 { return decades(10, m.of(1_000_000, 100)) },
	open: func(m mode, x float64) (*station, error) {
		n := int(x)
		one := func(f func(n int) time.Duration) measurement {
			return func() ([]float64, error) {
				var took time.Duration
				times := max(1, m.of(1000, 10)/n)
				for range times {
					took += f(n)
				}
				return []float64{float64(took) / float64(times*n)}, nil
			}
		}
		s := &station{sides: []measurement{one(wakeThen), one(wakeTasks), one(wakePromise), one(wakeChannel), one(wakeCond)}}
		for i := 1; i < len(s.sides); i++ {
			s.fits(i, n, taskBytes)
		}
		return s, nil
	},
}

func wakeThen(n int) (took time.Duration) {
	s, p, ended := fifo.New(fifo.Options{}), promise.New[int](), 0
	must(0, s.Run(context.Background(), func(context.Context) error {
		for range n {
			suspend.Then(context.Background(), p.AwaitOp(), s, func(int, error) { ended++ })
		}
		start := time.Now()
		must(0, p.Fill(1))
		for ended < n {
			suspend.Yield()
		}
		took = time.Since(start)
		return nil
	}))
	return took
}

func wakeTasks(n int) (took time.Duration) {
	p, ended := promise.New[int](), 0
	inFifo(func() {
		for range n {
			must(0, suspend.Here().Go(func() { ended += must(p.Await(context.Background())) }))
		}
		suspend.Yield()
		start := time.Now()
		must(0, p.Fill(1))
		for ended < n {
			suspend.Yield()
		}
		took = time.Since(start)
	})
	return took
}

// wakeGoroutines has n of them wait.
func wakeGoroutines(n int, wait, wake func()) time.Duration {
	var began, ended sync.WaitGroup
	began.Add(n)
	for range n {
		ended.Go(func() { began.Done(); wait() })
	}
	began.Wait()
	time.Sleep(time.Millisecond) // for the last of them to wait
	start := time.Now()
	wake()
	ended.Wait()
	return time.Since(start)
}

func wakePromise(n int) time.Duration {
	p := promise.New[int]()
	return wakeGoroutines(n, func() { must(p.Await(context.Background())) }, func() { must(0, p.Fill(1)) })
}

func wakeChannel(n int) time.Duration {
	c := make(chan struct{})
	return wakeGoroutines(n, func() { <-c }, func() { close(c) })
}

func wakeCond(n int) time.Duration {
	var mu sync.Mutex
	c, woken := sync.NewCond(&mu), false
	return wakeGoroutines(n, func() {
		mu.Lock()
		for !woken {
			c.Wait()
		}
		mu.Unlock()
	}, func() {
		mu.Lock()
		woken = true
		c.Broadcast()
		mu.Unlock()
	})
}

var growTasks = curve{
	id: "grow-tasks", title: "n tasks, each of which yields once",
	about:   "From before the first is started, by a task of the same scheduler, until the last has ended, divided by n. Making and closing the scheduler is not counted; each has a new one.",
	x:       axis{label: "tasks", log: true},
	figures: []figure{{name: "time", label: "ns per task", log: true}},
	series:  []string{"event loop", "fifo", "work-stealing pool", "goroutines"},
	rounds:  3, cold: true,
	points: func(m mode) []float64 { return decades(10, m.of(1_000_000, 100)) },
	open: func(m mode, x float64) (*station, error) {
		n := int(x)
		one := func(on func(main func()) error) measurement {
			return func() (v []float64, err error) {
				times := max(1, m.of(1000, 10)/n)
				err = on(func() {
					start := time.Now()
					for range times {
						yieldOnce(n)
					}
					v = []float64{float64(time.Since(start)) / float64(times*n)}
				})
				return v, err
			}
		}
		s := &station{sides: []measurement{
			one(func(main func()) error {
				l, err := eventloop.New(eventloop.Options{})
				if err != nil {
					return err
				}
				inTask(l, main)
				return l.Close()
			}),
			one(func(main func()) error { inFifo(main); return nil }),
			one(func(main func()) error {
				p := workstealing.New(workstealing.Options{})
				inTask(p, main)
				return p.Close()
			}),
			one(func(main func()) error { main(); return nil }),
		}}
		for i := range s.sides {
			s.fits(i, n, taskBytes)
		}
		return s, nil
	},
}

// yieldOnce waits for n, on the scheduler of the calling task or on goroutines.
func yieldOnce(n int) {
	here := suspend.Here()
	if here == suspend.Goroutines {
		var all sync.WaitGroup
		for range n {
			all.Go(runtime.Gosched)
		}
		all.Wait()
		return
	}
	all := latch.New(n)
	for range n {
		must(0, here.Go(func() { suspend.Yield(); all.CountDown() }))
	}
	must(0, all.Wait(context.Background()))
}

var growSelect = curve{
	id: "grow-select", title: "A select of n receives of which one becomes possible",
	about:   "The channels have no buffer, and the sender picks one at random; making the cases is not counted.",
	x:       axis{label: "cases", log: true},
	figures: []figure{{name: "time", label: "ns per case", log: true}},
	series:  []string{"Select, tasks of a fifo", "Select, goroutines", "reflect.Select, goroutines"},
	rounds:  3,
	points:  func(m mode) []float64 { return append([]float64{2}, decades(10, m.of(1_000_000, 100))...) },
	open: func(m mode, x float64) (*station, error) {
		n := int(x)
		ours := make([]*chanx.Chan[int], n)
		cases := make([]suspend.Selectable, n)
		native := make([]chan int, n)
		reflected := make([]reflect.SelectCase, n)
		for i := range n {
			ours[i] = chanx.New[int](0)
			cases[i] = suspend.On(ours[i].RecvOp())
			native[i] = make(chan int)
			reflected[i] = reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(native[i])}
		}
		bg := context.Background()
		send := func(times int) {
			for i := range times {
				must(0, ours[rand.IntN(n)].Send(bg, i))
			}
		}
		receive := func(times int) {
			for i := range times {
				check(must(suspend.Select(bg, cases...)).(*suspend.Case[int]).Value() == i)
			}
		}
		one := func(f func(int)) measurement {
			once := timed(f).once(m)
			return func() ([]float64, error) {
				v, err := once()
				return []float64{v[0] / float64(n)}, err
			}
		}
		s := &station{sides: []measurement{
			one(func(times int) {
				inFifo(func() {
					must(0, suspend.Here().Go(func() { send(times) }))
					receive(times)
				})
			}),
			one(func(times int) { both(func() { send(times) }, func() { receive(times) }) }),
			one(func(times int) {
				both(func() {
					for i := range times {
						native[rand.IntN(n)] <- i
					}
				}, func() {
					for i := range times {
						_, v, _ := reflect.Select(reflected)
						check(int(v.Int()) == i)
					}
				})
			}),
		}}
		if n > 65_536 {
			s.sides[2] = nil
			s.notes = append(s.notes, "reflect.Select takes no more than 65,536 cases.")
		}
		return s, nil
	},
}
