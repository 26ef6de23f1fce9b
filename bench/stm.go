package main

import (
	"context"
	"math/rand/v2"
	"sync"

	peer "github.com/anacrolix/stm"
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
