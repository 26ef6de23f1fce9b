package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	peer "github.com/anacrolix/stm"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
)

// The rows and the curve of transactions that wait, and of the scan.

func twoSides(open func() (put, take func())) func(int) {
	return func(n int) {
		put, take := open()
		both(func() { times(n, put) }, func() { times(n, take) })
	}
}

const slots = 16

func queueOurs() (put, take func()) {
	var ring [slots]stm.Var[int]
	var first, stored stm.Var[int]
	return func() {
			atomically(func(tx *stm.Tx) error {
				n := stored.Get(tx)
				if n == slots {
					return stm.Retry
				}
				ring[(first.Get(tx)+n)%slots].Set(tx, 1)
				stored.Set(tx, n+1)
				return nil
			})
		}, func() {
			got := 0
			atomically(func(tx *stm.Tx) error {
				n, at := stored.Get(tx), first.Get(tx)
				if n == 0 {
					return stm.Retry
				}
				got = ring[at].Get(tx)
				first.Set(tx, (at+1)%slots)
				stored.Set(tx, n-1)
				return nil
			})
			check(got == 1)
		}
}

func queuePeer() (put, take func()) {
	var ring [slots]*peer.Var[int]
	for i := range ring {
		ring[i] = peer.NewVar(0)
	}
	first, stored := peer.NewVar(0), peer.NewVar(0)
	return func() {
			peer.Atomically(peer.VoidOperation(func(tx *peer.Tx) {
				n := stored.Get(tx)
				tx.Assert(n < slots)
				ring[(first.Get(tx)+n)%slots].Set(tx, 1)
				stored.Set(tx, n+1)
			}))
		}, func() {
			got := peer.Atomically(func(tx *peer.Tx) int {
				n, at := stored.Get(tx), first.Get(tx)
				tx.Assert(n > 0)
				first.Set(tx, (at+1)%slots)
				stored.Set(tx, n-1)
				return ring[at].Get(tx)
			})
			check(got == 1)
		}
}

func queueCond() (put, take func()) {
	var mu sync.Mutex
	notEmpty, notFull := sync.NewCond(&mu), sync.NewCond(&mu)
	var ring [slots]int
	first, stored := 0, 0
	return func() {
			mu.Lock()
			for stored == slots {
				notFull.Wait()
			}
			ring[(first+stored)%slots] = 1
			stored++
			mu.Unlock()
			notEmpty.Signal()
		}, func() {
			mu.Lock()
			for stored == 0 {
				notEmpty.Wait()
			}
			got := ring[first]
			first = (first + 1) % slots
			stored--
			mu.Unlock()
			notFull.Signal()
			check(got == 1)
		}
}

func queueChannel() (put, take func()) {
	c := make(chan int, slots)
	return func() { c <- 1 }, func() { check(<-c == 1) }
}

func selectTransaction(n int) {
	ctx := context.Background()
	var v stm.Var[int]
	c := chanx.New[int](0)
	inFifo(func() {
		must(0, suspend.Here().Go(func() {
			for i := range n {
				if i%2 == 0 {
					must(0, c.Send(ctx, 1))
					continue
				}
				atomically(func(tx *stm.Tx) error { v.Set(tx, 1); return nil })
				suspend.Yield() // the other waits again
			}
		}))
		tx := suspend.On(stm.Op(func(tx *stm.Tx) (int, error) {
			if v.Get(tx) == 0 {
				return 0, stm.Retry
			}
			v.Set(tx, 0)
			return 1, nil
		}))
		recv := suspend.On(c.RecvOp())
		for range n {
			must(suspend.Select(ctx, tx, recv))
		}
	})
}

func selectReceives(n int) {
	ctx := context.Background()
	x, y := chanx.New[int](0), chanx.New[int](0)
	inFifo(func() {
		must(0, suspend.Here().Go(func() {
			x, y := x, y
			for i := range n {
				must(0, x.Send(ctx, i))
				x, y = y, x
			}
		}))
		first, second := suspend.On(x.RecvOp()), suspend.On(y.RecvOp())
		for range n {
			must(suspend.Select(ctx, first, second))
		}
	})
}

func scanBesideWriter(both bool) func(mode) (*sides, error) {
	vars := make([]stm.Var[int], 1000)
	scan := func(n int) {
		times(n, func() {
			atomically(func(tx *stm.Tx) error {
				for i := range vars {
					vars[i].Get(tx)
				}
				return nil
			})
		})
	}
	// beside measures the scan while another goroutine writes again and again.
	beside := func(write func(i int)) side {
		return timedBy(func(n int) time.Duration {
			stop, writing, ended := new(atomic.Bool), make(chan struct{}), make(chan struct{})
			go func() {
				defer close(ended)
				for i := 0; !stop.Load(); i++ {
					if write(i); i == 0 {
						close(writing)
					}
				}
			}()
			<-writing
			took := onThread(func() { scan(n) })
			stop.Store(true)
			<-ended
			return took
		})
	}
	return func(mode) (*sides, error) {
		other, plain := stm.NewVar(0), new(atomic.Pointer[[2]int])
		s := &sides{
			ours: beside(func(i int) { atomically(func(tx *stm.Tx) error { other.Set(tx, i); return nil }) }),
			peer: timedBy(func(n int) time.Duration { return onThread(func() { scan(n) }) }),
		}
		if both {
			s.peer = beside(func(i int) { plain.Store(&[2]int{i}) })
		}
		if runtime.GOMAXPROCS(0) < 2 {
			s.note = "one processor: the two take turns"
		}
		return s, nil
	}
}

// onThread returns the processor time that f takes, since the writer, and others, may have the processor meanwhile.
func onThread(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := threadTime()
	f()
	return threadTime() - start
}

// herd is how long it takes to wake transactions that wait.
var herd = curve{
	id: "stm-herd", title: "One of n waiting transactions goes on",
	about:   "Each of n tasks of a fifo waits for a token of its own. They read one Var, or a Var each; a commit hands one token to one of them.",
	x:       axis{label: "transactions that wait", log: true},
	figures: []figure{{name: "time", label: "nanoseconds until it has the token", log: true}},
	series:  []string{"all wait for one Var", "each waits for its own"},
	rounds:  3,
	points: func(m mode) []float64 {
		if m.Tiny {
			return []float64{1, 10}
		}
		return []float64{1, 10, 100, 1000}
	},
	open: func(m mode, x float64) (*station, error) {
		n := int(x)
		tokens := m.of(max(20, 20_000/n), 2)
		one := func(vars int) measurement {
			return func() ([]float64, error) { return []float64{wakeOne(n, vars, tokens)}, nil }
		}
		return &station{sides: []measurement{one(1), one(n)}, notes: []string{fmt.Sprintf("%d tokens", tokens)}}, nil
	},
}

// wakeOne returns how long a token takes.
func wakeOne(n, vars, tokens int) (each float64) {
	owner := make([]stm.Var[int], vars) // 1 + the one that has the token; 0: nobody; -1: it is over
	got := 0
	inFifo(func() {
		for i := range n {
			v := &owner[i%vars]
			must(0, suspend.Here().Go(func() {
				for over := false; !over; {
					atomically(func(tx *stm.Tx) error {
						switch v.Get(tx) {
						case i + 1:
							v.Set(tx, 0)
						case -1:
							over = true
						default:
							return stm.Retry
						}
						return nil
					})
					got++
				}
			}))
		}
		suspend.Yield()
		start := time.Now()
		for k := range tokens {
			i := k * 7919 % n
			atomically(func(tx *stm.Tx) error { owner[i%vars].Set(tx, i+1); return nil })
			for got == k {
				suspend.Yield()
			}
		}
		each = float64(time.Since(start)) / float64(tokens)
		for i := range owner {
			atomically(func(tx *stm.Tx) error { owner[i].Set(tx, -1); return nil })
		}
	})
	return each
}
