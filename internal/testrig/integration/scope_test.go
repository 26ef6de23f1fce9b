package integration_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/cond"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/lazy"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
)

// One scope has a child for every blocking operation, on one scheduler after another. When the scope is cancelled, all return at
// once, with the cause, and nothing of them is kept alive.
func TestEverythingParkedInOneScope(t *testing.T) {
	oops := errors.New("oops")
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		var held, condLock mutex.Mutex
		held.Lock()
		var heldRW, gatedRW mutex.RWMutex
		_, _ = heldRW.TryLock(), gatedRW.TryRLock()
		sem := semaphore.New(1)
		_ = sem.Acquire(bg, 1)
		var (
			empty   mvar.MVar[int]
			full    = mvar.NewFull(1)
			p       = promise.New[int]()
			c       = cond.New(&condLock)
			ch      = chanx.New[int](0)
			stuffed = chanx.New[int](1)
			open    = latch.New(1)
			barrier = latch.NewBarrier(2)
			forcing = make(chan struct{})
			forced  = lazy.New(func(context.Context) (int, error) { close(forcing); return p.Await(bg) }, lazy.Restart)
		)
		_, _ = stuffed.TrySend(1)
		go func() { _, _ = forced.Force(bg) }() // another goroutine forces it
		<-forcing
		only := func(_ any, err error) error { return err }
		operations := map[string]func(ctx context.Context) error{
			"Mutex.Lock":        held.LockContext,
			"RWMutex.Lock":      heldRW.LockContext,
			"RWMutex.RLock":     heldRW.RLockContext,
			"RWMutex.Lock gate": gatedRW.LockContext,
			"Acquire":           func(ctx context.Context) error { return sem.Acquire(ctx, 1) },
			"Put":               func(ctx context.Context) error { return full.Put(ctx, 2) },
			"Take":              func(ctx context.Context) error { return only(empty.Take(ctx)) },
			"Read":              func(ctx context.Context) error { return only(empty.Read(ctx)) },
			"Swap":              func(ctx context.Context) error { return only(empty.Swap(ctx, 1)) },
			"Modify":            func(ctx context.Context) error { return empty.Modify(ctx, func(v int) (int, error) { return v, nil }) },
			"Await":             func(ctx context.Context) error { return only(p.Await(ctx)) },
			"Wait for a signal": func(ctx context.Context) error {
				_ = condLock.LockContext(context.WithoutCancel(ctx))
				defer condLock.Unlock()
				return c.Wait(ctx)
			},
			"Send":            func(ctx context.Context) error { return stuffed.Send(ctx, 2) },
			"Recv":            func(ctx context.Context) error { return only(ch.Recv(ctx)) },
			"Wait at latch":   open.Wait,
			"Wait at barrier": func(ctx context.Context) error { return only(barrier.Wait(ctx)) },
			"Force":           func(ctx context.Context) error { return only(forced.Force(ctx)) },
			"Sleep":           func(ctx context.Context) error { return suspend.Sleep(ctx, time.Hour) },
			"Select": func(ctx context.Context) error {
				return only(suspend.Select(ctx, suspend.CaseOf(ch.RecvOp()), suspend.CaseOf(held.LockOp()), suspend.CaseOf(p.AwaitOp()),
					suspend.CaseOf(empty.TakeOp()), suspend.CaseOf(suspend.After(time.Hour)), suspend.CaseOf(sem.AcquireOp(1)),
					suspend.CaseOf(open.WaitOp()), suspend.CaseOf(heldRW.RLockOp()), suspend.CaseOf(forced.ValueOp())))
			},
			"Do": func(ctx context.Context) error {
				return only(suspend.Do(ctx, suspend.Choose(ch.RecvOp(), empty.ReadOp())))
			},
			"Run": func(ctx context.Context) error {
				return scope.Run(ctx, func(ctx context.Context, inner *scope.Scope) error {
					inner.Go(s, func(ctx context.Context) error { return only(p.Await(ctx)) })
					return only(ch.Recv(ctx))
				})
			},
			"goroutine": func(ctx context.Context) error { // blocks natively
				return suspend.Blocking(ctx, func() { <-ctx.Done() })
			},
		}
		var returned atomic.Int32
		var kept schedtest.Objects
		err := scope.Run(bg, func(ctx context.Context, sc *scope.Scope) error {
			for name, do := range operations {
				held := kept.New()
				sc.Go(s, func(ctx context.Context) error {
					err := do(ctx)
					runtime.KeepAlive(held)
					if name != "goroutine" && !errors.Is(err, oops) {
						t.Errorf("%s = %v", name, err)
					}
					returned.Add(1)
					return nil
				})
			}
			schedtest.Quiet(t) // waits until all children wait
			sc.Cancel(oops)
			return nil
		})
		if !errors.Is(err, oops) || int(returned.Load()) != len(operations) {
			t.Errorf("Run = %v, %d of %d returned", err, returned.Load(), len(operations))
		}
		kept.Collected(t, 0)
		_ = p.Fill(0) // ends the task that forces
		runtime.KeepAlive([]any{&held, &heldRW, &gatedRW, sem, &empty, full, c, ch, stuffed, open, barrier, forced})
	})
}
