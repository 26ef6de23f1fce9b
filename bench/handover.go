package main

import (
	"context"
	"sync"

	peer "github.com/anacrolix/stm"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
)

// A queue function creates a queue, and returns functions that put and take values. One party calls put with 0, 1, …, and the other party
// calls take with the same numbers, which take compares with the values that it gets.
type queue = func() (put, take func(i int))

// handover returns a work function in which two parties hand n values over. An operation puts and takes one value. The time to start and
// end the two parties is counted, once for all values.
func handover(where place, q queue) work {
	return func(n int) {
		put, take := q()
		where(func() { upTo(n, take) }, func() { upTo(n, put) })
	}
}

// mvarTable measures all queues of one, at x = 0 on one processor, and at x = 1 on two.
func mvarTable(b *bench, x float64) (all []side) {
	place := []place{tasks, fifos}[int(x)]
	for _, f := range []work{handover(place, mvarOf(bg)), handover(place, mvarOf(uncancelled)), handover(goroutines, channelOf(1)),
		handover(goroutines, channelOr(uncancelled)), handover(goroutines, condOf(1))} {
		all = append(all, wall.of(onProcs(int(x)+1, f), 1, b.Round))
	}
	return all
}

func mvarOf(ctx context.Context) queue {
	return func() (put, take func(int)) {
		var m mvar.MVar[int]
		return func(i int) { ok(m.Put(ctx, i)) }, func(i int) { check(must(m.Take(ctx)) == i) }
	}
}

func channelOf(size int) queue {
	return func() (put, take func(int)) {
		c := make(chan int, size)
		return func(i int) { c <- i }, func(i int) { check(<-c == i) }
	}
}

// channelOr returns a channel with a capacity of 1. Both sides select between the channel and ctx.Done.
func channelOr(ctx context.Context) queue {
	return func() (put, take func(int)) {
		c := make(chan int, 1)
		return func(i int) { sendOr(ctx, c, i) }, func(i int) {
			v, _ := receiveOr(ctx, c)
			check(v == i)
		}
	}
}

func sendOr[T any](ctx context.Context, to chan T, v T) {
	select {
	case to <- v:
	case <-ctx.Done():
	}
}

func receiveOr[T any](ctx context.Context, from chan T) (v T, more bool) {
	select {
	case v, more = <-from:
	case <-ctx.Done():
	}
	return v, more
}

// condOf returns a queue that is built from a sync.Mutex and two sync.Conds.
func condOf(size int) queue {
	return func() (put, take func(int)) {
		var mu sync.Mutex
		notEmpty, notFull := sync.NewCond(&mu), sync.NewCond(&mu)
		ring := make([]int, size)
		first, stored := 0, 0
		return func(i int) {
				mu.Lock()
				for stored == size {
					notFull.Wait()
				}
				ring[(first+stored)%size] = i
				stored++
				mu.Unlock()
				notEmpty.Signal()
			}, func(i int) {
				mu.Lock()
				for stored == 0 {
					notEmpty.Wait()
				}
				got := ring[first]
				first = (first + 1) % size
				stored--
				mu.Unlock()
				notFull.Signal()
				check(got == i)
			}
	}
}

// selecting hands values over on two unbuffered channels in turn. The taker waits for both channels in a Select. The cases are created once
// for all values.
func selecting() (put, take func(int)) {
	x, y := chanx.New[int](0), chanx.New[int](0)
	first, second := suspend.On(x.RecvOp()), suspend.On(y.RecvOp())
	return func(i int) { ok(x.Send(bg, i)); x, y = y, x }, func(i int) {
		got := first
		if must(suspend.Select(bg, first, second)) == second {
			got = second
		}
		check(got.Value() == i)
	}
}

func selectingNatively() (put, take func(int)) {
	x, y := make(chan int), make(chan int)
	to, other := x, y
	return func(i int) { to <- i; to, other = other, to }, func(i int) {
		select {
		case v := <-x:
			check(v == i)
		case v := <-y:
			check(v == i)
		}
	}
}

// slots is the size of the transactional queues. Every value is 1, because both libraries might allocate memory for other values.
const slots = 16

func stmOurs() (put, take func(int)) {
	var ring [slots]stm.Var[int]
	var first, stored stm.Var[int]
	return func(int) {
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
		}
}

func stmPeer() (put, take func(int)) {
	ring := peerVars(slots, 0)
	first, stored := peer.NewVar(0), peer.NewVar(0)
	return func(int) {
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
		}
}
