package main

import (
	"context"
	"math/rand/v2"
	"reflect"
	"runtime"
	"sync"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

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

// wakeGoroutines makes n goroutines wait.
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
