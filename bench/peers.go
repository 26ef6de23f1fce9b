package main

import (
	"context"
	"runtime"
	"sync"

	"github.com/alitto/pond/v2"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/cond"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
	"github.com/panjf2000/ants/v2"
	"github.com/sourcegraph/conc/iter"
	concpool "github.com/sourcegraph/conc/pool"
	"golang.org/x/sync/errgroup"
	xsemaphore "golang.org/x/sync/semaphore"
)

// These rows compare with other libraries, and have no must.
var peerRows = []row{
	// A small task of processor work, about a microsecond, is an operation: one goroutine submits n, and waits until all
	// have ended. The pools are made for one task on each processor, and once, except that of conc, whose Wait ends it, and
	// errgroup.
	pair("pool/go", "go + WaitGroup", 0, 0, func() (ours, peer func(int)) {
		return poolOurs, func(n int) {
			var wg sync.WaitGroup
			for range n {
				wg.Go(small)
			}
			wg.Wait()
		}
	}),
	pair("pool/errgroup", "x/sync errgroup, SetLimit", 0, 0, func() (ours, peer func(int)) {
		return poolOurs, func(n int) {
			var g errgroup.Group
			g.SetLimit(runtime.GOMAXPROCS(0))
			for range n {
				g.Go(func() error { small(); return nil })
			}
			must(0, g.Wait())
		}
	}),
	{id: "pool/ants", against: "ants v2", unit: "ns", open: func(mode) (*sides, error) {
		p, err := ants.NewPool(runtime.GOMAXPROCS(0))
		if err != nil {
			return nil, err
		}
		return &sides{ours: timed(poolOurs), peer: timed(func(n int) {
			var wg sync.WaitGroup
			wg.Add(n)
			f := func() { small(); wg.Done() }
			for range n {
				must(0, p.Submit(f))
			}
			wg.Wait()
		}), close: p.Release}, nil
	}},
	{id: "pool/pond", against: "pond v2", unit: "ns", open: func(mode) (*sides, error) {
		p := pond.NewPool(runtime.GOMAXPROCS(0))
		return &sides{ours: timed(poolOurs), peer: timed(func(n int) {
			var wg sync.WaitGroup
			wg.Add(n)
			f := func() { small(); wg.Done() }
			for range n {
				must(0, p.Go(f))
			}
			wg.Wait()
		}), close: p.StopAndWait}, nil
	}},
	pair("pool/conc", "conc pool", 0, 0, func() (ours, peer func(int)) {
		return poolOurs, func(n int) {
			p := concpool.New().WithMaxGoroutines(runtime.GOMAXPROCS(0))
			for range n {
				p.Go(small)
			}
			p.Wait()
		}
	}),
	// The same as a loop over a slice of n. Both choose the share of a worker themselves.
	{id: "pool/for", against: "conc iter.ForEach", unit: "ns", open: func(mode) (*sides, error) {
		p := workstealing.New(workstealing.Options{})
		return &sides{ours: timed(func(n int) {
			data := make([]int, n)
			must(0, workstealing.For(context.Background(), p, 0, n, 0, func(_ context.Context, lo, hi int) error {
				for i := range data[lo:hi] {
					small()
					data[lo+i]++
				}
				return nil
			}))
		}), peer: timed(func(n int) {
			iter.ForEach(make([]int, n), func(v *int) { small(); *v++ })
		}), close: func() { must(0, p.Close()) }}, nil
	}},

	// An item through a buffer of 8 between four producers and four consumers, goroutines, under a sync.Mutex, with a context
	// that could be cancelled, is an operation. The peers are the two that users write: sync.Cond that the end of ctx
	// broadcasts to, as the documentation of context.AfterFunc has it, and a list of channels.
	pair("cond-ctx/afterfunc", "sync.Cond + context.AfterFunc", 0, 0, func() (ours, peer func(int)) {
		return bounded(func(l sync.Locker) condition { return cond.New(l) }),
			bounded(func(l sync.Locker) condition { return &afterFuncCond{sync.NewCond(l)} })
	}),
	pair("cond-ctx/channels", "a list of channels", 0, 0, func() (ours, peer func(int)) {
		return bounded(func(l sync.Locker) condition { return cond.New(l) }),
			bounded(func(l sync.Locker) condition { return &channelCond{l: l} })
	}),

	// 8 goroutines, 4 permits, one each.
	{id: "semaphore-ctx", against: "x/sync semaphore of 4", unit: "ns", open: func(mode) (*sides, error) {
		ours, peer, ctx := semaphore.New(4), xsemaphore.NewWeighted(4), cancellable()
		return &sides{
			ours: timed(eightAtOnce(func() { must(0, ours.Acquire(ctx, 1)); ours.Release(1) })),
			peer: timed(eightAtOnce(func() { must(0, peer.Acquire(ctx, 1)); peer.Release(1) })),
		}, nil
	}},
	pair("rwmutex-free", "sync.RWMutex", 0, 0, func() (ours, peer func(int)) {
		var m mutex.RWMutex
		var std sync.RWMutex
		ctx, value, sum := context.Background(), 1, 0
		return func(n int) {
				for range n {
					_ = m.RLock(ctx)
					sum += value
					m.RUnlock()
				}
			}, func(n int) {
				for range n {
					std.RLock()
					sum += value
					std.RUnlock()
				}
			}
	}),
	// 8 readers for each of which every hundredth turn is a writer's.
	pair("rwmutex-mixed", "sync.RWMutex", 0, 0, func() (ours, peer func(int)) {
		var m mutex.RWMutex
		var std sync.RWMutex
		ctx := context.Background()
		return mixed(func() { _ = m.RLock(ctx) }, m.RUnlock, func() { _ = m.Lock(ctx) }, m.Unlock),
			mixed(std.RLock, std.RUnlock, std.Lock, std.Unlock)
	}),
	// A value through a channel of 64, from one task of a fifo to another, or one goroutine to another.
	pair("chan-64", "native channel of 64, two goroutines", 0, 0, func() (ours, peer func(int)) {
		return func(n int) {
				ctx, c := context.Background(), chanx.New[int](64)
				inFifo(func() {
					must(0, suspend.Here().Go(func() {
						for i := range n {
							must(0, c.Send(ctx, i))
						}
					}))
					for i := range n {
						check(must(c.Recv(ctx)) == i)
					}
				})
			}, func(n int) {
				c := make(chan int, 64)
				both(func() {
					for i := range n {
						c <- i
					}
				}, func() {
					for i := range n {
						check(<-c == i)
					}
				})
			}
	}),
	// A child is an operation, of which a scope has ten, on one fifo; that of errgroup are goroutines. All have its context.
	pair("scope", "x/sync errgroup", 0, 0, func() (ours, peer func(int)) {
		return func(n int) {
				count := 0
				inFifo(func() {
					here := suspend.Here()
					for i := 0; i < n; i += 10 {
						must(0, scope.Run(context.Background(), func(ctx context.Context, s *scope.Scope) error {
							for range min(10, n-i) {
								if err := s.Go(here, func(context.Context) error { count++; return nil }); err != nil {
									return err
								}
							}
							return nil
						}))
					}
				})
				check(count == n)
			}, func(n int) {
				for i := 0; i < n; i += 10 {
					g, ctx := errgroup.WithContext(context.Background())
					for range min(10, n-i) {
						g.Go(ctx.Err)
					}
					must(0, g.Wait())
				}
			}
	}),
	// One of 1000 that count down while another waits for all is an operation, on one fifo, and on goroutines.
	pair("latch", "sync.WaitGroup", 0, 0, func() (ours, peer func(int)) {
		return func(n int) {
			inFifo(func() {
				here := suspend.Here()
				for i := 0; i < n; i += 1000 {
					k := min(1000, n-i)
					l := latch.New(k)
					for range k {
						must(0, here.Go(l.CountDown))
					}
					must(0, l.Wait(context.Background()))
				}
			})
		}, spawnGo(1000)
	}),
}

// small is a microsecond's work, more or less.
func small() {
	x := uint64(1)
	for range 1000 {
		x = x*6364136223846793005 + 1442695040888963407
	}
	if x == 0 {
		panic("bench: impossible")
	}
}

func poolOurs(n int) {
	p := poolOf()
	var wg sync.WaitGroup
	wg.Add(n)
	f := func() { small(); wg.Done() }
	for range n {
		must(0, p.Go(f))
	}
	wg.Wait()
}

// poolOf is a pool that the rows share, and never close.
var poolOf = sync.OnceValue(func() *workstealing.Pool { return workstealing.New(workstealing.Options{}) })

func eightAtOnce(f func()) func(n int) {
	return func(n int) {
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for range (n + i) / 8 {
					f()
				}
			})
		}
		wg.Wait()
	}
}

func mixed(rlock, runlock, lock, unlock func()) func(n int) {
	return func(n int) {
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for j := range (n + i) / 8 {
					if j%100 == 99 {
						lock()
						unlock()
					} else {
						rlock()
						runlock()
					}
				}
			})
		}
		wg.Wait()
	}
}

type condition interface {
	Wait(ctx context.Context) error
	Signal()
}

// bounded is n items through a buffer of 8.
func bounded(newCond func(sync.Locker) condition) func(n int) {
	ctx := cancellable()
	return func(n int) {
		var mu sync.Mutex
		notFull, notEmpty := newCond(&mu), newCond(&mu)
		inBuffer := 0
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for range (n + i) / 4 {
					mu.Lock()
					for inBuffer == 8 {
						must(0, notFull.Wait(ctx))
					}
					inBuffer++
					notEmpty.Signal()
					mu.Unlock()
				}
			})
			wg.Go(func() {
				for range (n + i) / 4 {
					mu.Lock()
					for inBuffer == 0 {
						must(0, notEmpty.Wait(ctx))
					}
					inBuffer--
					notFull.Signal()
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		check(inBuffer == 0)
	}
}

type afterFuncCond struct{ *sync.Cond }

func (c *afterFuncCond) Wait(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		c.L.Lock()
		defer c.L.Unlock()
		c.Broadcast()
	})
	defer stop()
	if ctx.Err() == nil {
		c.Cond.Wait()
	}
	return ctx.Err()
}

// channelCond has a channel of one for each waiter. It is used under its lock.
type channelCond struct {
	l       sync.Locker
	waiting []chan struct{}
}

func (c *channelCond) Wait(ctx context.Context) error {
	woken := make(chan struct{}, 1)
	c.waiting = append(c.waiting, woken)
	c.l.Unlock()
	select {
	case <-woken:
		c.l.Lock()
		return nil
	case <-ctx.Done():
	}
	c.l.Lock()
	for i, w := range c.waiting {
		if w == woken {
			c.waiting = append(c.waiting[:i], c.waiting[i+1:]...)
			return ctx.Err()
		}
	}
	c.Signal() // what came for this one goes to another
	return ctx.Err()
}

func (c *channelCond) Signal() {
	if len(c.waiting) > 0 {
		c.waiting[0] <- struct{}{}
		c.waiting = c.waiting[1:]
	}
}
