package simulation_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/idle"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/respool"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
)

// A node accepts a function, and crashes before the function begins. Everything that waits for the function learns of this.
func TestAFunctionThatACrashDrops(t *testing.T) {
	never := func(context.Context) error { return errors.New("a crashed node has run a function") }
	decorated := map[string]func(n *simulation.Node) suspend.Spawner{
		"node":        func(n *simulation.Node) suspend.Spawner { return n },
		"limit":       func(n *simulation.Node) suspend.Spawner { return scope.Limit(1, n) },
		"group":       func(n *simulation.Node) suspend.Spawner { return idle.New(n, nil) },
		"limit group": func(n *simulation.Node) suspend.Spawner { return scope.Limit(1, idle.New(n, nil)) },
	}
	for what, waits := range map[string]func(ctx context.Context, on suspend.Spawner, crash func()) error{
		"scope.Run": func(ctx context.Context, on suspend.Spawner, crash func()) error {
			return scope.Run(ctx, func(ctx context.Context, s *scope.Scope) error {
				s.Go(on, never)
				crash()
				_, err := promise.New[int]().Await(ctx) // the failure of the child cancels its siblings
				return err
			})
		},
		"scope.Group": func(ctx context.Context, on suspend.Spawner, crash func()) error {
			g := scope.Open(ctx, scope.Collect)
			g.Go(on, never)
			crash()
			return g.Shutdown(ctx)
		},
		"scope.Child": func(ctx context.Context, on suspend.Spawner, crash func()) (err error) {
			_ = scope.Run(ctx, func(_ context.Context, s *scope.Scope) error {
				c := scope.Start(s, on, func(ctx context.Context) (int, error) { return 0, never(ctx) })
				crash()
				_, err = c.Await(ctx)
				return nil
			})
			return err
		},
		"promise.Go": func(ctx context.Context, on suspend.Spawner, crash func()) error {
			p := promise.Go(ctx, on, func(ctx context.Context) (int, error) { return 0, never(ctx) })
			crash()
			_, err := p.Await(ctx)
			return err
		},
	} {
		for how, decorate := range decorated {
			t.Run(what+" on a "+how, func(t *testing.T) {
				var got error
				require.NoError(t, simulation.Run(func(ctx context.Context, w *simulation.World) error {
					n := w.Node("n")
					got = waits(ctx, decorate(n), n.Crash)
					return nil
				}, simulation.Options{Seed: 1}).Err)
				require.ErrorIs(t, got, suspend.ErrAbandoned)
			})
		}
	}
}

// After a crash has dropped a task of a Group, the Group is idle and has no live task.
func TestAGroupWithATaskThatACrashDrops(t *testing.T) {
	idles := 0
	require.NoError(t, simulation.Run(func(ctx context.Context, w *simulation.World) error {
		n := w.Node("n")
		g := idle.New(n, func() { idles++ })
		_ = g.Go(func() { idles = 100 })
		n.Crash()
		if err := g.WaitIdle(ctx); err != nil {
			return err
		}
		return g.Wait(ctx)
	}, simulation.Options{Seed: 1}).Err)
	require.Equal(t, 1, idles)
}

// A crash drops a function that was started through a Limit, through the Spawner of a Scope, or as the Open of a pool. The place,
// the membership and the permit are free again.
func TestWhatACrashDropsGivesItsPlaceBack(t *testing.T) {
	crashes := func(f func(ctx context.Context, n *simulation.Node) error) {
		for seed := range uint64(10) {
			require.NoError(t, simulation.Run(func(ctx context.Context, w *simulation.World) error {
				return f(ctx, w.Node("n"))
			}, simulation.Options{Seed: seed + 1}).Err)
		}
	}
	crashes(func(ctx context.Context, n *simulation.Node) error {
		l, ran := scope.Limit(1, n), false
		_ = l.Go(func() {})
		n.Crash()
		n.Restart(func(context.Context) {})
		_ = suspend.Sleep(ctx, time.Second)
		_ = l.Go(func() { ran = true })
		_ = suspend.Sleep(ctx, time.Second)
		if !ran {
			return errors.New("the place of a function that was dropped is lost")
		}
		return nil
	})
	crashes(func(ctx context.Context, n *simulation.Node) error {
		err := scope.Run(ctx, func(_ context.Context, s *scope.Scope) error {
			_ = s.On(n).Go(func() {})
			n.Crash()
			return nil
		})
		if !errors.Is(err, suspend.ErrAbandoned) {
			return errors.New("the scope has not failed")
		}
		return nil
	})
	crashes(func(ctx context.Context, n *simulation.Node) error {
		pool := respool.New(respool.Options[int]{Max: 1, Open: func(context.Context) (int, error) { return 1, nil }})
		begun := false
		_ = n.Go(func() {
			begun = true
			if l, err := pool.Acquire(context.Background()); err == nil {
				l.Release()
			}
		})
		for !begun {
			suspend.Yield()
		}
		n.Crash()
		c, stop := cancel.WithTimeout(ctx, time.Hour)
		defer stop()
		_, err := pool.Acquire(c)
		return err
	})
}
