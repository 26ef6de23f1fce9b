package main

import (
	"math/rand/v2"
	"sync"

	peer "github.com/anacrolix/stm"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
)

// In these rows, an operation is one transaction, or the peer's equivalent of a transaction.

func atomically(f func(tx *stm.Tx) error) { ok(stm.Atomically(bg, f)) }

func peerAtomically(f func(tx *peer.Tx)) { peer.Atomically(peer.VoidOperation(f)) }

// An op performs one operation of a row.
type op = func(rng *rand.Rand)

// oneByOne repeats an op on one goroutine. byEight does the same on eight goroutines in parallel.
func oneByOne(f op) work { return again(func() { f(nil) }) }

func byEight(f op) work {
	return func(n int) {
		var rngs [8]*rand.Rand
		for i := range rngs {
			rngs[i] = rand.New(rand.NewPCG(uint64(i), 1))
		}
		split(n, 8, func(w, _ int) { f(rngs[w]) })
	}
}

func incOurs() op {
	v := stm.NewVar(0)
	return func(*rand.Rand) { atomically(func(tx *stm.Tx) error { v.Set(tx, v.Get(tx)+1); return nil }) }
}

func incMutex() op {
	var mu sync.Mutex
	n := 0
	return func(*rand.Rand) { mu.Lock(); n++; mu.Unlock() }
}

const accounts = 1000

// transfers calls the function transfer n times, each time with two of 1000 accounts chosen at random.
func transfers(transfer func(from, to int)) work {
	return func(n int) {
		rng := rand.New(rand.NewPCG(1, 1))
		for range n {
			from := rng.IntN(accounts)
			transfer(from, (from+1+rng.IntN(accounts-1))%accounts)
		}
	}
}

func transferOurs() func(from, to int) {
	all := make([]stm.Var[int], accounts)
	return func(from, to int) {
		atomically(func(tx *stm.Tx) error {
			all[from].Set(tx, all[from].Get(tx)-1)
			all[to].Set(tx, all[to].Get(tx)+1)
			return nil
		})
	}
}

// transferLocks locks both accounts in the order of their numbers, to avoid deadlocks.
func transferLocks() func(from, to int) {
	all := make([]struct {
		sync.Mutex
		n int
	}, accounts)
	return func(from, to int) {
		a, b := &all[min(from, to)], &all[max(from, to)]
		a.Lock()
		b.Lock()
		all[from].n--
		all[to].n++
		b.Unlock()
		a.Unlock()
	}
}

func transferMutex() func(from, to int) {
	var mu sync.Mutex
	var all [accounts]int
	return func(from, to int) {
		mu.Lock()
		all[from]--
		all[to]++
		mu.Unlock()
	}
}

// few is the number of variables. One in 20 transactions writes to one variable, and all other transactions read every variable.
const few = 4

func readMostlyOurs() op {
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

func readMostlyRWMutex() op { mu := new(sync.RWMutex); return readMostlyLocked(mu, mu.RLocker()) }

func readMostlyMutex() op { mu := new(sync.Mutex); return readMostlyLocked(mu, mu) }

func readMostlyLocked(mu, reading sync.Locker) op {
	var vars [few]int
	return func(rng *rand.Rand) {
		if write := rng.IntN(20 * few); write < few {
			mu.Lock()
			vars[write]++
			mu.Unlock()
			return
		}
		sum := 0
		reading.Lock()
		for i := range vars {
			sum += vars[i]
		}
		reading.Unlock()
		check(sum >= 0)
	}
}

// slots is the size of the transactional queues. Every value is 1, because both libraries might allocate memory for other values.
const slots = 16

func stmOurs() (put, take func(int)) {
	var ring [slots]stm.Var[int]
	var first, stored stm.Var[int]
	return looped(func(int) {
		atomically(func(tx *stm.Tx) error {
			n := stored.Get(tx)
			if n == slots {
				return stm.Retry
			}
			ring[(first.Get(tx)+n)%slots].Set(tx, 1)
			stored.Set(tx, n+1)
			return nil
		})
	}, func(int) {
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
	})
}

func stmPeer() (put, take func(int)) {
	var ring [slots]*peer.Var[int]
	for i := range ring {
		ring[i] = peer.NewVar(0)
	}
	first, stored := peer.NewVar(0), peer.NewVar(0)
	return looped(func(int) {
		peerAtomically(func(tx *peer.Tx) {
			n := stored.Get(tx)
			tx.Assert(n < slots)
			ring[(first.Get(tx)+n)%slots].Set(tx, 1)
			stored.Set(tx, n+1)
		})
	}, func(int) {
		got := peer.Atomically(func(tx *peer.Tx) int {
			n, at := stored.Get(tx), first.Get(tx)
			tx.Assert(n > 0)
			first.Set(tx, (at+1)%slots)
			stored.Set(tx, n-1)
			return ring[at].Get(tx)
		})
		check(got == 1)
	})
}

// stmCase performs a transaction as a kept case of a Select, whose other case is a receive that is never possible.
func stmCase() func() {
	v, never := stm.NewVar(0), chanx.New[int](0)
	transaction, recv := suspend.CaseOf(stm.Op(increments(v))), suspend.CaseOf(never.RecvOp())
	return func() { must(suspend.Select(bg, transaction, recv)) }
}

func stmDo() func() {
	f := increments(stm.NewVar(0))
	return func() { must(stm.Do(bg, f)) }
}

func increments(v *stm.Var[int]) func(tx *stm.Tx) (int, error) {
	return func(tx *stm.Tx) (int, error) { n := v.Get(tx); v.Set(tx, n+1); return n, nil }
}

const levels = 4000

func nestedOnce() func() { return nested(levels) }

func nestedOften() func() {
	f := nested(levels / 16)
	return func() { times(16, f) }
}

// nested returns a transaction of n levels. Each writes a variable, and later one that the level around it has written, too.
func nested(n int) func() {
	vars := make([]stm.Var[int], n)
	var nest func(tx *stm.Tx, i int) error
	nest = func(tx *stm.Tx, i int) error {
		if i == n {
			return nil
		}
		vars[i].Set(tx, vars[i].Get(tx)+1)
		err := stm.Nested(tx, func(tx *stm.Tx) error { return nest(tx, i+1) })
		if i > 0 {
			vars[i-1].Set(tx, vars[i-1].Get(tx)+1)
		}
		return err
	}
	return func() { atomically(func(tx *stm.Tx) error { return nest(tx, 0) }) }
}
