package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	peer "github.com/anacrolix/stm"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
)

const anacrolix = "anacrolix/stm v0.5"

// Transactions. An operation is one transaction, or what stands in its place.
var stmRows = []row{
	pair("stm-counter/anacrolix", anacrolix, 0.12, 0.05, func() (ours, theirs func(int)) { return serially(incOurs()), serially(incPeer()) }),
	pair("stm-counter/mutex", "sync.Mutex", 18, 10, func() (ours, theirs func(int)) { return serially(incOurs()), serially(incMutex()) }),
	eightOf("stm-contended/anacrolix", anacrolix, 0.12, 0.05, incOurs, incPeer),
	eightOf("stm-contended/mutex", "sync.Mutex", 12, 8, incOurs, incMutex),

	// Between two of 1000 accounts, chosen at random.
	pair("stm-transfer/locks", "two mutexes, in order", 11, 8, func() (ours, theirs func(int)) { return transferOurs(), transferLocks() }),
	pair("stm-transfer/mutex", "one sync.Mutex", 13, 9, func() (ours, theirs func(int)) { return transferOurs(), transferMutex() }),
	pair("stm-transfer/anacrolix", anacrolix, 0.15, 0.06, func() (ours, theirs func(int)) { return transferOurs(), transferPeer() }),

	// Five goroutines take two forks each, and put them back.
	pair("stm-philosophers", anacrolix, 0.15, 0.06, func() (ours, theirs func(int)) { return philosophersOurs, philosophersPeer }),

	// 19 of 20 transactions read four variables, one writes one, eight goroutines.
	eightOf("stm-readmostly/rwmutex", "sync.RWMutex", 6, 3, readMostlyOurs, func() func(*rand.Rand) { return readMostlyLocked(new(sync.RWMutex)) }),
	eightOf("stm-readmostly/mutex", "sync.Mutex", 3, 2, readMostlyOurs, func() func(*rand.Rand) { return readMostlyLocked(oneMutex{new(sync.Mutex)}) }),
	eightOf("stm-readmostly/anacrolix", anacrolix, 0.06, 0.03, readMostlyOurs, readMostlyPeer),

	// A queue of 16, one goroutine puts and one takes.
	pair("stm-queue16/cond", "mutex and sync.Cond", 14, 8, func() (ours, theirs func(int)) { return twoSides(queueOurs), twoSides(queueCond) }),
	pair("stm-queue16/channel", "channel of 16", 8, 5, func() (ours, theirs func(int)) { return twoSides(queueOurs), twoSides(queueChannel) }),
	pair("stm-queue16/anacrolix", anacrolix, 0.08, 0.04, func() (ours, theirs func(int)) { return twoSides(queueOurs), twoSides(queuePeer) }),
	pair("stm-queue16/fifo", "channel of 16, two goroutines", 7, 4, func() (ours, theirs func(int)) {
		return func(n int) {
			put, take := queueOurs()
			inFifo(func() {
				must(0, suspend.Here().Go(func() { times(n, put) }))
				times(n, take)
			})
		}, twoSides(queueChannel)
	}),

	// A Select over a transaction and a receive, which come in turn, so that each waits; against two receives. Two tasks of a fifo.
	pair("stm-select", "Select over two receives, same scheduler", 6, 3, func() (ours, theirs func(int)) { return selectTransaction, selectReceives }),

	// A scan of 1000 variables while another goroutine writes one that is not among them; against the same scan while another
	// goroutine allocates as much and writes no variable. Two processors may be one core, so a scan alone is quicker than both.
	{id: "stm-scan/beside", against: "the same, beside a writer of no Var: CPU", unit: "ns", must: 1.2, aim: 1.05, open: scanBesideWriter(true)},
	{id: "stm-scan/alone", against: "the same, alone: CPU", unit: "ns", open: scanBesideWriter(false)},
}

func times(n int, f func()) {
	for range n {
		f()
	}
}

func serially(f func(*rand.Rand)) func(int) {
	return func(n int) { times(n, func() { f(nil) }) }
}

// eightOf compares two operations that eight goroutines do at once.
func eightOf(id, against string, must, aim float64, ours, theirs func() func(rng *rand.Rand)) row {
	side := func(open func() func(*rand.Rand)) func(int) {
		f := open()
		return func(n int) {
			var all sync.WaitGroup
			for i := range 8 {
				all.Go(func() {
					rng := rand.New(rand.NewPCG(uint64(i), 1))
					times((n+i)/8, func() { f(rng) })
				})
			}
			all.Wait()
		}
	}
	return pair(id, against, must, aim, func() (func(int), func(int)) { return side(ours), side(theirs) })
}

func atomically(f func(tx *stm.Tx) error) { must(0, stm.Atomically(context.Background(), f)) }

func incOurs() func(*rand.Rand) {
	v := stm.NewVar(0)
	return func(*rand.Rand) {
		atomically(func(tx *stm.Tx) error { v.Set(tx, v.Get(tx)+1); return nil })
	}
}

func incPeer() func(*rand.Rand) {
	v := peer.NewVar(0)
	return func(*rand.Rand) { peer.Atomically(peer.VoidOperation(func(tx *peer.Tx) { v.Set(tx, v.Get(tx)+1) })) }
}

func incMutex() func(*rand.Rand) {
	var mu sync.Mutex
	n := 0
	return func(*rand.Rand) {
		mu.Lock()
		n++
		mu.Unlock()
	}
}

const accounts = 1000

// fromTo chooses two accounts for each of n transfers.
func fromTo(n int, f func(from, to int)) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range n {
		from := rng.IntN(accounts)
		f(from, (from+1+rng.IntN(accounts-1))%accounts)
	}
}

func transferOurs() func(int) {
	all := make([]stm.Var[int], accounts)
	return func(n int) {
		fromTo(n, func(from, to int) {
			atomically(func(tx *stm.Tx) error {
				all[from].Set(tx, all[from].Get(tx)-1)
				all[to].Set(tx, all[to].Get(tx)+1)
				return nil
			})
		})
	}
}

func transferPeer() func(int) {
	var all []*peer.Var[int]
	for range accounts {
		all = append(all, peer.NewVar(0))
	}
	return func(n int) {
		fromTo(n, func(from, to int) {
			peer.Atomically(peer.VoidOperation(func(tx *peer.Tx) {
				all[from].Set(tx, all[from].Get(tx)-1)
				all[to].Set(tx, all[to].Get(tx)+1)
			}))
		})
	}
}

func transferLocks() func(int) {
	all := make([]struct {
		sync.Mutex
		n int
	}, accounts)
	return func(n int) {
		fromTo(n, func(from, to int) {
			a, b := &all[min(from, to)], &all[max(from, to)]
			a.Lock()
			b.Lock()
			all[from].n--
			all[to].n++
			b.Unlock()
			a.Unlock()
		})
	}
}

func transferMutex() func(int) {
	var mu sync.Mutex
	var all [accounts]int
	return func(n int) {
		fromTo(n, func(from, to int) {
			mu.Lock()
			all[from]--
			all[to]++
			mu.Unlock()
		})
	}
}

const seats = 5

func table(n int, meal func(left, right int)) {
	var all sync.WaitGroup
	for i := range seats {
		all.Go(func() { times((n+i)/seats, func() { meal(i, (i+1)%seats) }) })
	}
	all.Wait()
}

func philosophersOurs(n int) {
	var taken [seats]stm.Var[bool]
	table(n, func(left, right int) {
		atomically(func(tx *stm.Tx) error {
			if taken[left].Get(tx) || taken[right].Get(tx) {
				return stm.Retry
			}
			taken[left].Set(tx, true)
			taken[right].Set(tx, true)
			return nil
		})
		atomically(func(tx *stm.Tx) error {
			taken[left].Set(tx, false)
			taken[right].Set(tx, false)
			return nil
		})
	})
}

func philosophersPeer(n int) {
	var taken [seats]*peer.Var[bool]
	for i := range taken {
		taken[i] = peer.NewVar(false)
	}
	table(n, func(left, right int) {
		peer.Atomically(peer.VoidOperation(func(tx *peer.Tx) {
			tx.Assert(!taken[left].Get(tx) && !taken[right].Get(tx))
			taken[left].Set(tx, true)
			taken[right].Set(tx, true)
		}))
		peer.Atomically(peer.VoidOperation(func(tx *peer.Tx) {
			taken[left].Set(tx, false)
			taken[right].Set(tx, false)
		}))
	})
}

const few = 4

func readMostlyOurs() func(*rand.Rand) {
	var vars [few]stm.Var[int]
	return func(rng *rand.Rand) {
		write := rng.IntN(20 * few)
		atomically(func(tx *stm.Tx) error {
			if write < few {
				vars[write].Set(tx, vars[write].Get(tx)+1)
				return nil
			}
			sum := 0
			for i := range vars {
				sum += vars[i].Get(tx)
			}
			check(sum >= 0)
			return nil
		})
	}
}

func readMostlyPeer() func(*rand.Rand) {
	var vars [few]*peer.Var[int]
	for i := range vars {
		vars[i] = peer.NewVar(0)
	}
	return func(rng *rand.Rand) {
		write := rng.IntN(20 * few)
		peer.Atomically(peer.VoidOperation(func(tx *peer.Tx) {
			if write < few {
				vars[write].Set(tx, vars[write].Get(tx)+1)
				return
			}
			sum := 0
			for i := range vars {
				sum += vars[i].Get(tx)
			}
			check(sum >= 0)
		}))
	}
}

type rwLocker interface {
	sync.Locker
	RLock()
	RUnlock()
}

type oneMutex struct{ *sync.Mutex }

func (m oneMutex) RLock()   { m.Lock() }
func (m oneMutex) RUnlock() { m.Unlock() }

func readMostlyLocked(mu rwLocker) func(*rand.Rand) {
	var vars [few]int
	return func(rng *rand.Rand) {
		if write := rng.IntN(20 * few); write < few {
			mu.Lock()
			vars[write]++
			mu.Unlock()
			return
		}
		sum := 0
		mu.RLock()
		for i := range vars {
			sum += vars[i]
		}
		mu.RUnlock()
		check(sum >= 0)
	}
}

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
