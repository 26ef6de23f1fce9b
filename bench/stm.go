package main

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	peer "github.com/anacrolix/stm"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
)

// Transactions. An operation is one transaction, or what stands in its place.

func atomically(f func(tx *stm.Tx) error) { ok(stm.Atomically(bg, f)) }

func peerAtomically(f func(tx *peer.Tx)) { peer.Atomically(peer.VoidOperation(f)) }

func peerVars[T any](n int, v T) []*peer.Var[T] {
	all := make([]*peer.Var[T], n)
	for i := range all {
		all[i] = peer.NewVar(v)
	}
	return all
}

// An op is done again and again.
type op = func(rng *rand.Rand)

// oneByOne is an op on one goroutine, and byEight on eight of them at once.
func oneByOne(open func() op) func() work {
	return func() work { f := open(); return again(func() { f(nil) }) }
}

func byEight(open func() op) func() work {
	return func() work {
		f := open()
		return func(n int) {
			var rngs [8]*rand.Rand
			for i := range rngs {
				rngs[i] = rand.New(rand.NewPCG(uint64(i), 1))
			}
			split(n, 8, func(w, _ int) { f(rngs[w]) })
		}
	}
}

func incOurs() op {
	v := stm.NewVar(0)
	return func(*rand.Rand) { atomically(func(tx *stm.Tx) error { v.Set(tx, v.Get(tx)+1); return nil }) }
}

func incPeer() op {
	v := peer.NewVar(0)
	return func(*rand.Rand) { peerAtomically(func(tx *peer.Tx) { v.Set(tx, v.Get(tx)+1) }) }
}

func incMutex() op {
	var mu sync.Mutex
	n := 0
	return func(*rand.Rand) { mu.Lock(); n++; mu.Unlock() }
}

const accounts = 1000

// transfers are between two of 1000 accounts, chosen at random.
func transfers(open func() (transfer func(from, to int))) func() work {
	return func() work {
		transfer := open()
		return func(n int) {
			rng := rand.New(rand.NewPCG(1, 1))
			for range n {
				from := rng.IntN(accounts)
				transfer(from, (from+1+rng.IntN(accounts-1))%accounts)
			}
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

func transferPeer() func(from, to int) {
	all := peerVars(accounts, 0)
	return func(from, to int) {
		peerAtomically(func(tx *peer.Tx) {
			all[from].Set(tx, all[from].Get(tx)-1)
			all[to].Set(tx, all[to].Get(tx)+1)
		})
	}
}

// transferLocks takes the mutexes of both, in order.
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

const seats = 5

// philosophers are five goroutines that take two forks each, and put them back.
func philosophersOurs(n int) {
	var taken [seats]stm.Var[bool]
	split(n, seats, func(left, _ int) {
		right := (left + 1) % seats
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
	taken := peerVars(seats, false)
	split(n, seats, func(left, _ int) {
		right := (left + 1) % seats
		peerAtomically(func(tx *peer.Tx) {
			tx.Assert(!taken[left].Get(tx) && !taken[right].Get(tx))
			taken[left].Set(tx, true)
			taken[right].Set(tx, true)
		})
		peerAtomically(func(tx *peer.Tx) {
			taken[left].Set(tx, false)
			taken[right].Set(tx, false)
		})
	})
}

// few is how many variables 19 of 20 transactions read, and one writes one of.
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

func readMostlyPeer() op {
	vars := peerVars(few, 0)
	return func(rng *rand.Rand) {
		write := rng.IntN(20 * few)
		peerAtomically(func(tx *peer.Tx) {
			if write < few {
				vars[write].Set(tx, vars[write].Get(tx)+1)
				return
			}
			sum := 0
			for i := range vars {
				sum += vars[i].Get(tx)
			}
			check(sum >= 0)
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

// scans read 1000 variables, while another goroutine writes one that is not among them. The peer is the same scan while another goroutine
// allocates as much and writes no variable, or alone. Two processors may be one core, so a scan alone is quicker than both. It is time of
// the scanning thread, since the writer, and others, may have the processor meanwhile.
func scans(alone bool) func(b *bench) (ours, peer work) {
	return func(b *bench) (ours, peer work) {
		vars := make([]stm.Var[int], 1000)
		scan := func(n int) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			restart()
			times(n, func() {
				atomically(func(tx *stm.Tx) error {
					for i := range vars {
						vars[i].Get(tx)
					}
					return nil
				})
			})
			stop()
		}
		beside := func(write func(i int)) work {
			return func(n int) {
				over, writing, ended := new(atomic.Bool), make(chan struct{}), make(chan struct{})
				go func() {
					defer close(ended)
					for i := 0; !over.Load(); i++ {
						if write(i); i == 0 {
							close(writing)
						}
					}
				}()
				<-writing
				scan(n)
				over.Store(true)
				<-ended
			}
		}
		if runtime.GOMAXPROCS(0) < 2 {
			b.note("one processor: the two take turns")
		}
		other, plain := stm.NewVar(0), new(atomic.Pointer[[2]int])
		ours = beside(func(i int) { atomically(func(tx *stm.Tx) error { other.Set(tx, i); return nil }) })
		if alone {
			return ours, scan
		}
		return ours, beside(func(i int) { plain.Store(&[2]int{i}) })
	}
}

// herd is how long it takes until one of n transactions that wait has its token.
func herd(b *bench, x float64) []measurement {
	n := int(x)
	tokens := b.of(max(20, 20_000/n), 2)
	b.note(fmt.Sprintf("%d tokens", tokens))
	return []measurement{one(func() float64 { return wakeOne(n, 1, tokens) }), one(func() float64 { return wakeOne(n, n, tokens) })}
}

func wakeOne(n, vars, tokens int) (each float64) {
	owner := make([]stm.Var[int], vars) // 1 + the task that has the token; 0: nobody; -1: it is over
	got := 0
	inFifo(func() {
		for i := range n {
			v := &owner[i%vars]
			ok(suspend.Here().Go(func() {
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
