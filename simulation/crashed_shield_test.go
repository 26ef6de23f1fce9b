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

// crashed calls start to start a task of a Node, which waits for a Cond. A second later, the World locks the lock of the Cond,
// and calls then.
func crashed(t *testing.T, start func(ctx context.Context, n *simulation.Node, wait func(ctx context.Context)),
	then func(ctx context.Context, mu *mutex.Mutex, n *simulation.Node) error) {
	t.Helper()
	r := simulation.Run(func(ctx context.Context, w *simulation.World) error {
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
	}, simulation.Options{Seed: 1})
	if r.Err != nil {
		t.Fatal(r.Err)
	}
}

var errUnlocked = errors.New("the World's lock was unlocked by the crash")

// A task of the World waits behind the waiter of a paused node, which crashes.
func TestPausedNodeCrashed(t *testing.T) {
	crashed(t, func(ctx context.Context, n *simulation.Node, wait func(context.Context)) {
		_ = n.Go(func() { wait(ctx) })
	}, func(ctx context.Context, mu *mutex.Mutex, n *simulation.Node) error {
		n.Pause()
		n.Crash()
		mu.Unlock()
		_ = suspend.Sleep(ctx, time.Second)
		return mu.LockContext(ctx) // must not be a deadlock
	})
}

// A task of the first life of a node must not act in the second life.
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
			return errors.New("a task of the first life has started a task in the second, or has slept there for an hour")
		}
		return nil
	})
}

// The task of the crashed node belongs to a Group.
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

// The same holds with a fifo.Run in the task: the waiter has its lock again when the World unlocks it.
func TestCondInARunOfACrashedNode(t *testing.T) {
	for _, ends := range []bool{false, true} { // whether the World locks it before
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
				return errors.New("the waiter has not continued")
			}
			return mu.LockContext(ctx)
		})
		if !unlocked {
			t.Fatal(ends)
		}
	}
}

// Several tasks wait when the run ends.
func TestManyWaitersAtTheEnd(t *testing.T) {
	inside, most := 0, 0
	r := simulation.Run(func(ctx context.Context, w *simulation.World) error {
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
	}, simulation.Options{Seed: 1})
	if r.Err != nil || most != 1 {
		t.Fatal(r.Err, most)
	}
}
