package integration_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/braidgo/braid/adapters/random"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/cond"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/lazy"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
)

// Each of the classics runs with 2000 seeds of the adversary. The programs are small, so that a few steps cover many orders.
func TestClassicsUnderTheAdversary(t *testing.T) {
	for name, program := range map[string]func(rng *rand.Rand, s *random.Scheduler) (holds func() error){
		"philosophers with select":            philosophers,
		"opposite selects":                    oppositeSelects,
		"bounded buffer on a condition":       boundedBuffer,
		"readers, and a writer that gives up": gatingWriter,
		"a big waiter at the head gives up":   bigWaiter,
		"rendezvous with selects":             rendezvous,
		"lazy, forced by all":                 lazyByAll,
		"three lazies in a cycle":             lazyCycle,
	} {
		t.Run(name, func(t *testing.T) { schedtest.Seeds(t, 2000, program) })
	}
}

// Each philosopher takes both forks at once, or the first free fork and then the other, or puts the first one back.
func philosophers(rng *rand.Rand, s *random.Scheduler) func() error {
	const n = 3
	var forks [n]*chanx.Chan[int] // a fork on the table is a value in its channel
	for i := range forks {
		forks[i] = chanx.New[int](1)
		_, _ = forks[i].TrySend(i)
	}
	meals := 0
	for i := range n {
		_ = s.Go(func() {
			for eaten := 0; eaten < 2; {
				left, right := suspend.CaseOf(forks[i].RecvOp()), suspend.CaseOf(forks[(i+1)%n].RecvOp())
				first, _ := suspend.Select(bg, left, right)
				second := suspend.Selectable(right)
				if first == second {
					second = left
				}
				if won, _ := suspend.TrySelect(bg, second); won == nil {
					put(forks[:], first)
					suspend.Yield()
					continue
				}
				meals++
				eaten++
				put(forks[:], left)
				put(forks[:], right)
			}
		})
	}
	return func() error {
		for i := range forks {
			if v, ok, _ := forks[i].TryRecv(); v != i || !ok {
				return fmt.Errorf("fork %d: %d, %v", i, v, ok)
			}
		}
		if meals != 2*n {
			return fmt.Errorf("%d meals", meals)
		}
		return nil
	}
}

func put(forks []*chanx.Chan[int], c suspend.Selectable) {
	fork := c.(*suspend.Case[int]).Value()
	_ = forks[fork].Send(bg, fork)
}

func oppositeSelects(rng *rand.Rand, s *random.Scheduler) func() error {
	a, b := chanx.New[int](0), chanx.New[int](0)
	sent, got := 0, 0
	one := func(to, from *chanx.Chan[int]) {
		send, recv := suspend.CaseOf(to.SendOp(1)), suspend.CaseOf(from.RecvOp())
		switch won, _ := suspend.Select(bg, send, recv); won {
		case send:
			sent++
		case recv:
			got++
		}
	}
	for range 1 + rng.IntN(2) {
		_ = s.Go(func() { one(a, b) })
		_ = s.Go(func() { one(b, a) })
	}
	return func() error {
		if sent != got || sent == 0 {
			return fmt.Errorf("%d sent, %d received", sent, got)
		}
		return nil
	}
}

// If a signal meets a cancelled waiter, another one gets it. A task that returns from Wait holds the lock.
func boundedBuffer(rng *rand.Rand, s *random.Scheduler) func() error {
	const items = 4
	var m mutex.Mutex
	notEmpty, notFull := cond.New(&m), cond.New(&m)
	full, holder := 0, 0
	in, out := 0, 0
	var failure error
	hold := func(id int) {
		if holder != 0 {
			failure = errors.New("two hold the lock")
		}
		holder = id
	}
	wait := func(id int, c *cond.Cond, ctx context.Context) error {
		holder = 0
		err := c.Wait(ctx)
		hold(id)
		return err
	}
	_ = s.Go(func() {
		for range items {
			m.Lock()
			hold(1)
			for full == 1 {
				_ = wait(1, notFull, bg)
			}
			full, in = 1, in+1
			notEmpty.Signal()
			holder = 0
			m.Unlock()
		}
	})
	consume := func(id int, ctx context.Context) bool {
		m.Lock()
		hold(id)
		defer func() { holder = 0; m.Unlock() }()
		for full == 0 {
			if out == items {
				return false
			}
			if wait(id, notEmpty, ctx) != nil {
				return false
			}
		}
		if full, out = 0, out+1; out == items {
			notEmpty.Broadcast() // no more values will come
		}
		notFull.Signal()
		return true
	}
	ctx, stop := cancel.New(bg)
	for i := range 2 { // these readers give up
		_ = s.Go(func() {
			for consume(2+i, ctx) {
			}
		})
	}
	_ = s.Go(func() { // this one does not
		for consume(4, bg) {
		}
	})
	for range rng.IntN(12) {
		suspend.Yield()
	}
	stop(nil)
	return func() error {
		if failure == nil && (in != items || out != items || full != 0) {
			failure = fmt.Errorf("%d in, %d out", in, out)
		}
		return failure
	}
}

func gatingWriter(rng *rand.Rand, s *random.Scheduler) func() error {
	var m mutex.RWMutex
	readers, writers, read := 0, 0, 0
	var failure error
	check := func() {
		if writers > 1 || writers == 1 && readers > 0 {
			failure = fmt.Errorf("%d writers with %d readers", writers, readers)
		}
	}
	ctx, stop := cancel.New(bg)
	var release promise.Promise[struct{}]
	_ = s.Go(func() { // reads until the others have read, so that they need not wait for it
		m.RLock()
		readers++
		check()
		_, _ = release.Await(bg)
		readers--
		m.RUnlock()
	})
	_ = s.Go(func() {
		if m.LockContext(ctx) != nil {
			return
		}
		writers++
		check()
		suspend.Yield()
		writers--
		m.Unlock()
	})
	for range 2 {
		_ = s.Go(func() {
			m.RLock()
			readers++
			check()
			suspend.Yield()
			readers--
			m.RUnlock()
			if read++; read == 2 {
				_ = release.Fill(struct{}{})
			}
		})
	}
	for range rng.IntN(8) {
		suspend.Yield()
	}
	stop(nil) // opens the gate
	return func() error {
		if failure == nil && !m.TryLock() {
			failure = errors.New("held in the end")
		}
		return failure
	}
}

func bigWaiter(rng *rand.Rand, s *random.Scheduler) func() error {
	sem := semaphore.New(3)
	held, most := int64(0), int64(0)
	take := func(ctx context.Context, n int64) {
		if sem.Acquire(ctx, n) != nil {
			return
		}
		held += n
		most = max(most, held)
		suspend.Yield()
		held -= n
		sem.Release(n)
	}
	_ = sem.Acquire(bg, 1) // held until the small requests are queued
	ctx, stop := cancel.New(bg)
	small := 0
	_ = s.Go(func() { take(ctx, 3) })
	for range 3 {
		_ = s.Go(func() {
			take(bg, 1)
			if small++; small == 3 {
				sem.Release(1)
			}
		})
	}
	for range rng.IntN(8) {
		suspend.Yield()
	}
	stop(nil)
	return func() error {
		if most > 3 || small != 3 || !sem.TryAcquire(3) {
			return fmt.Errorf("at most %d held, %d small ones served", most, small)
		}
		return nil
	}
}

func rendezvous(rng *rand.Rand, s *random.Scheduler) func() error {
	a, b := chanx.New[int](0), chanx.New[int](0)
	ctx, stop := cancel.New(bg)
	sum, n := 0, 0
	for i := 1; i <= 4; i++ {
		_ = s.Go(func() {
			sa, sb := suspend.CaseOf(a.SendOp(i)), suspend.CaseOf(b.SendOp(i))
			if won, _ := suspend.Select(ctx, sa, sb); won != nil {
				sum, n = sum+i, n+1
			}
		})
		_ = s.Go(func() {
			ra, rb := suspend.CaseOf(a.RecvOp()), suspend.CaseOf(b.RecvOp())
			if won, _ := suspend.Select(ctx, ra, rb); won != nil {
				sum, n = sum-won.(*suspend.Case[int]).Value(), n-1
			}
		})
	}
	for range rng.IntN(20) {
		suspend.Yield()
	}
	stop(nil)
	return func() error {
		if sum != 0 || n != 0 {
			return fmt.Errorf("%d more sent than received, sums differ by %d", n, sum)
		}
		return nil
	}
}

func lazyByAll(rng *rand.Rand, s *random.Scheduler) func() error {
	runs, got := 0, 0
	ctx, stop := cancel.New(bg)
	l := lazy.New(func(ctx context.Context) (int, error) {
		runs++
		suspend.Yield()
		if err := suspend.Err(ctx); err != nil {
			return 0, err
		}
		return 7, nil
	}, lazy.Restart)
	for i := range 4 {
		_ = s.Go(func() {
			c := bg
			if i == 0 {
				c = ctx // this task may run f and then be cancelled, so that another one has to run it
			}
			if v, err := l.Force(c); v == 7 && err == nil {
				got++
			} else if i > 0 {
				got = -100
			}
		})
	}
	for range rng.IntN(6) {
		suspend.Yield()
	}
	stop(nil)
	return func() error {
		if runs > 2 || got < 3 {
			return fmt.Errorf("%d runs, %d got it", runs, got)
		}
		return nil
	}
}

func lazyCycle(rng *rand.Rand, s *random.Scheduler) func() error {
	var ls [3]*lazy.Lazy[int]
	for i := range ls {
		ls[i] = lazy.New(func(ctx context.Context) (int, error) {
			suspend.Yield()
			return ls[(i+1)%3].Force(ctx)
		}, lazy.Restart)
	}
	recursive := 0
	for i := range ls {
		_ = s.Go(func() {
			if _, err := ls[i].Force(bg); errors.Is(err, lazy.ErrRecursive) {
				recursive++
			}
		})
	}
	return func() error {
		if recursive != 3 {
			return fmt.Errorf("%d of 3 got ErrRecursive", recursive)
		}
		return nil
	}
}
