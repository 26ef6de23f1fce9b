package main

import (
	"context"
	"sync"
	"time"

	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/lazy"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
	"golang.org/x/sync/semaphore"
)

// This file contains the rows for queues, locks, promises and lazy values.

// A queue function creates a queue, and returns functions that put and take the values 0 to n-1. The function take checks the values.
type queue = func() (put, take func(n int))

// looped returns put and take of a queue, from functions for one value. The queues of tasks contain their loops instead: after each switch,
// a task returns through all its frames, and the processor mispredicts each return.
func looped(put, take func(i int)) (_, _ func(n int)) {
	return func(n int) { upTo(n, put) }, func(n int) { upTo(n, take) }
}

// handover returns a work function in which two parties hand n values over. An operation puts and takes one value. The time to start and
// end the two parties is counted, once for all values.
func handover(where place, q queue) work {
	return func(n int) {
		put, take := q()
		where(func() { take(n) }, func() { put(n) })
	}
}

// handing compares two queues. The peer's parties are goroutines.
func handing(where place, ours, peer queue) opener {
	return fixed(handover(where, ours), handover(goroutines, peer))
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
		return func(n int) {
				for i := range n {
					ok(m.Put(ctx, i))
				}
			}, func(n int) {
				for i := range n {
					check(must(m.Take(ctx)) == i)
				}
			}
	}
}

func channelOf(size int) queue {
	return func() (put, take func(int)) {
		c := make(chan int, size)
		return func(n int) {
				for i := range n {
					c <- i
				}
			}, func(n int) {
				for i := range n {
					check(<-c == i)
				}
			}
	}
}

// channelOr returns a channel with a capacity of 1. Both sides select between the channel and ctx.Done.
func channelOr(ctx context.Context) queue {
	return func() (put, take func(int)) {
		c := make(chan int, 1)
		return func(n int) {
				for i := range n {
					sendOr(ctx, c, i)
				}
			}, func(n int) {
				for i := range n {
					v, _ := receiveOr(ctx, c)
					check(v == i)
				}
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
		return looped(func(i int) {
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
		})
	}
}

// selecting hands values over on two unbuffered channels in turn. The taker waits for both channels in a Select. The cases are created once
// for all values.
func selecting() (put, take func(int)) {
	x, y := chanx.New[int](0), chanx.New[int](0)
	first, second := suspend.CaseOf(x.RecvOp()), suspend.CaseOf(y.RecvOp())
	return func(n int) {
			to, other := x, y
			for i := range n {
				ok(to.Send(bg, i))
				to, other = other, to
			}
		}, func(n int) {
			for i := range n {
				got := first
				if must(suspend.Select(bg, first, second)) == second {
					got = second
				}
				check(got.Value() == i)
			}
		}
}

func selectingNatively() (put, take func(int)) {
	x, y := make(chan int), make(chan int)
	return func(n int) {
			to, other := x, y
			for i := range n {
				to <- i
				to, other = other, to
			}
		}, func(n int) {
			for i := range n {
				select {
				case v := <-x:
					check(v == i)
				case v := <-y:
					check(v == i)
				}
			}
		}
}

// lockFree increments a counter under an uncontended lock. The loops are written out, because a call of the function times would cost a
// nanosecond here.
func lockFree(b *bench) (ours, peer side) {
	var m mutex.Mutex
	var std sync.Mutex
	ctx, count := context.Background(), 0
	return b.works(func(n int) {
		for range n {
			_ = m.LockContext(ctx)
			count++
			m.Unlock()
		}
	}, func(n int) {
		for range n {
			std.Lock()
			count++
			std.Unlock()
		}
	}, 1)
}

// locks holds the two operations of a lock.
type locks struct{ lock, unlock func() }

func mutexes(ctx context.Context) func() locks {
	return func() locks {
		m := new(mutex.Mutex)
		return locks{func() { ok(m.LockContext(ctx)) }, m.Unlock}
	}
}

func stdMutex() locks {
	m := new(sync.Mutex)
	return locks{m.Lock, m.Unlock}
}

func weighted() locks {
	s := semaphore.NewWeighted(1)
	return locks{func() { ok(s.Acquire(uncancelled, 1)) }, func() { s.Release(1) }}
}

// eight divides n operations among eight goroutines. At first all goroutines wait for the lock; otherwise it would depend on chance whether
// they ever compete. The time to start the goroutines is not counted. The indirect calls of lock and unlock are counted on both sides.
func eight(l locks) work {
	return func(n int) {
		count := 0
		ended := make(chan struct{})
		l.lock()
		go func() {
			split(n, 8, func(int, int) { l.lock(); count++; l.unlock() })
			close(ended)
		}()
		time.Sleep(time.Millisecond)
		restart()
		l.unlock()
		<-ended
		stop()
		check(count == n)
	}
}

// awaiting reads a fulfilled promise, and forcing reads a forced lazy value. The peer calls a function made by sync.OnceValue. Each side
// must create its object outside the measured function, as a program would. Otherwise the compiler would inline the peer's call completely.
func awaiting(b *bench) (ours, peer side) {
	p := promise.New[int]()
	p.Fill(1)
	ctx := context.Background()
	return b.works(func(n int) { total(n, func() int { v, _ := p.Await(ctx); return v }) }, calling(), 1)
}

func forcing(b *bench) (ours, peer side) {
	l := lazy.New(func(context.Context) (int, error) { return 1, nil }, lazy.Restart)
	ctx := context.Background()
	must(l.Force(ctx))
	return b.works(func(n int) { total(n, func() int { v, _ := l.Force(ctx); return v }) }, calling(), 1)
}

func calling() work {
	f := sync.OnceValue(func() int { return 1 })
	f()
	return func(n int) { total(n, f) }
}
