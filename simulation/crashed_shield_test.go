package simulation_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/cond"
	"github.com/braidgo/braid/internal/idle"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
)

// crashed has a task of a Node, which start begins, wait for a Cond. A second later the World takes the lock of the Cond, and calls then.
func crashed(t *testing.T, start func(ctx context.Context, n *simulation.Node, wait func(ctx context.Context)),
	then func(ctx context.Context, mu *mutex.Mutex, n *simulation.Node) error) {
	t.Helper()
	r := simulation.Run(simulation.Options{Seed: 1}, func(ctx context.Context, w *simulation.World) error {
		var mu mutex.Mutex
		c, n := cond.New(&mu), w.Node("n")
		start(ctx, n, func(ctx context.Context) {
			_ = mu.LockContext(ctx)
			defer mu.Unlock()
			_ = c.Wait(ctx)
		})
		_ = suspend.Sleep(ctx, time.Second)
		_ = mu.LockContext(ctx)
		return then(ctx, &mu, n)
	})
	if r.Err != nil {
		t.Fatal(r.Err)
	}
}

var errUnlocked = errors.New("the World's lock was unlocked by the crash")

// T2b: a World task behind the paused one
func TestPausedNodeCrashed(t *testing.T) {
	crashed(t, func(ctx context.Context, n *simulation.Node, wait func(context.Context)) {
		_ = n.Go(func() { wait(ctx) })
	}, func(ctx context.Context, mu *mutex.Mutex, n *simulation.Node) error {
		n.Pause()
		n.Crash()
		mu.Unlock()
		_ = suspend.Sleep(ctx, time.Second)
		return mu.LockContext(ctx) // deadlock?
	})
}

// T3
func TestOldLifeActsInTheNew(t *testing.T) {
	born, waited := 0, false
	crashed(t, func(ctx context.Context, n *simulation.Node, wait func(context.Context)) {
		_ = n.Go(func() {
			defer func() {
				if n.Go(func() { born++ }) == nil {
					_ = suspend.Sleep(ctx, time.Hour)
					waited = true
				}
			}()
			wait(ctx)
		})
	}, func(ctx context.Context, mu *mutex.Mutex, n *simulation.Node) error {
		n.Crash()
		n.Restart(func(context.Context) {})
		mu.Unlock()
		_ = suspend.Sleep(ctx, 2*time.Hour)
		if born != 0 || waited {
			return errors.New("a task of the first life has started a task in the second, or slept an hour there")
		}
		return nil
	})
}

// T4
func TestCondInAGroupOfACrashedNode(t *testing.T) {
	crashed(t, func(ctx context.Context, n *simulation.Node, wait func(context.Context)) {
		_ = idle.New(n, nil).Go(func() { wait(ctx) })
	}, func(_ context.Context, mu *mutex.Mutex, n *simulation.Node) error {
		n.Crash()
		if mu.TryLock() {
			return errUnlocked
		}
		mu.Unlock()
		return nil
	})
}

// The same with a fifo.Run in the task: the waiter has its lock again when the World gives it away.
func TestCondInARunOfACrashedNode(t *testing.T) {
	for _, ends := range []bool{false, true} { // the World, before
		unlocked := false
		crashed(t, func(ctx context.Context, n *simulation.Node, wait func(context.Context)) {
			_ = n.Go(func() {
				_ = fifo.Run(ctx, func(ctx context.Context) error {
					defer func() { unlocked = true }()
					wait(ctx)
					return nil
				})
			})
		}, func(ctx context.Context, mu *mutex.Mutex, n *simulation.Node) error {
			n.Crash()
			_ = suspend.Sleep(ctx, time.Second)
			if unlocked || mu.TryLock() {
				return errUnlocked
			}
			if ends {
				return nil
			}
			mu.Unlock()
			_ = suspend.Sleep(ctx, time.Second)
			if !unlocked {
				return errors.New("the waiter has not gone on")
			}
			return mu.LockContext(ctx)
		})
		if !unlocked {
			t.Fatal(ends)
		}
	}
}

// several waiters at the end of a run
func TestManyWaitersAtTheEnd(t *testing.T) {
	inside, most := 0, 0
	r := simulation.Run(simulation.Options{Seed: 1}, func(ctx context.Context, w *simulation.World) error {
		var mu mutex.Mutex
		c := cond.New(&mu)
		for range 1000 {
			_ = w.Go(func() {
				_ = mu.LockContext(ctx)
				inside++
				defer func() { most = max(most, inside); inside--; mu.Unlock() }()
				inside--
				defer func() { inside++ }()
				_ = c.Wait(ctx)
			})
		}
		_ = suspend.Sleep(ctx, time.Second)
		_ = w.Go(func() {
			_ = mu.LockContext(ctx)
			inside++
			defer func() { most = max(most, inside); inside--; mu.Unlock() }()
			for range 4 {
				defer suspend.Sleep(ctx, time.Hour)
			}
			_ = suspend.Sleep(ctx, time.Hour)
		})
		return suspend.Sleep(ctx, time.Second)
	})
	if r.Err != nil || most != 1 {
		t.Fatal(r.Err, most)
	}
}
