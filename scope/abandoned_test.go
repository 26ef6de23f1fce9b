package scope_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/census"
)

func panics(context.Context) (int, error) { panic(errOops) }

// The error of the scope contains the value with which a child panicked. Otherwise only OnPanic would get it.
func TestWithWhatAChildHasPanicked(t *testing.T) {
	for name, f := range map[string]func(on suspend.Spawner) error{
		"Run": func(on suspend.Spawner) error {
			return scope.Run(bg, func(_ context.Context, s *scope.Scope) error {
				s.Go(on, func(context.Context) error { _, err := panics(bg); return err })
				return nil
			})
		},
		"On": func(on suspend.Spawner) error {
			return scope.Run(bg, func(_ context.Context, s *scope.Scope) error {
				return s.On(on).Go(func() { _, _ = panics(bg) })
			})
		},
		"Group": func(on suspend.Spawner) error {
			g := scope.Open(bg, scope.Collect)
			g.Go(on, func(context.Context) error { _, err := panics(bg); return err })
			return g.Shutdown(bg)
		},
		"Child": func(on suspend.Spawner) (err error) {
			_ = scope.Run(bg, func(_ context.Context, s *scope.Scope) error {
				c := scope.Start(s, on, panics)
				_, err = c.Await(bg)
				return nil
			})
			return err
		},
		"Map": func(on suspend.Spawner) error {
			_, err := scope.Map(bg, scope.Limit(1, on), []int{1, 2}, func(ctx context.Context, _ int) (int, error) { return panics(ctx) })
			return err
		},
		"Stream": func(on suspend.Spawner) (last error) {
			for _, err := range scope.Stream(bg, on, 2, scope.Lift(slices.Values([]int{1})), func(ctx context.Context, _ int) (int, error) { return panics(ctx) }) {
				last = err
			}
			return last
		},
	} {
		t.Run(name, func(t *testing.T) {
			var stack string
			s := fifo.New(fifo.Options{OnPanic: func(v any, at []byte) {
				require.Equal(t, errOops, v)
				stack = string(at)
			}})
			require.NoError(t, s.Run(bg, func(context.Context) error {
				err := f(s)
				require.ErrorIs(t, err, suspend.ErrAbandoned)
				require.ErrorIs(t, err, errOops)
				var p *suspend.PanicError
				require.ErrorAs(t, err, &p)
				require.Contains(t, string(p.Stack), "scope_test.panics")
				return nil
			}))
			require.Contains(t, stack, "scope_test.panics", "the scheduler still reports the place of the panic")
		})
	}
}

// A child that closes its own Group panics. Otherwise it would wait for itself for ever, even with a deadline.
func TestAGroupThatIsClosedByItsChild(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
		g := scope.Open(bg, scope.FirstError)
		other := scope.Open(bg, scope.FirstError)
		shutdown := func() {
			ctx, stop := context.WithTimeout(bg, time.Millisecond)
			defer stop()
			_ = g.Shutdown(ctx)
		}
		const text = "scope: Close or Shutdown of a Group called by its own child"
		checks := func(context.Context) error {
			schedtest.Panics(t, text, func() { _ = g.Close() })
			schedtest.Panics(t, text, shutdown)
			return scope.Run(bg, func(ctx context.Context, _ *scope.Scope) error {
				schedtest.Panics(t, text, func() { _ = g.Close() }) // inside a Run of the child
				return nil
			})
		}
		var ran atomic.Int64
		g.Go(on, func(ctx context.Context) error {
			ran.Add(1)
			require.NoError(t, ctx.Err())
			err := checks(ctx)
			require.NoError(t, ctx.Err(), "a Close that panics changes nothing")
			return err
		})
		c := scope.Start(g, on, func(ctx context.Context) (int, error) { ran.Add(1); return 1, checks(ctx) })
		schedtest.Run(t, on, func() { _, _ = c.Await(bg) })
		other.Go(on, func(context.Context) error { ran.Add(1); return g.Shutdown(bg) }) // a child of another Group may close g
		schedtest.Run(t, on, func() { require.NoError(t, other.Shutdown(bg)) })
		require.EqualValues(t, 3, ran.Load())
		require.NoError(t, g.Close())
	})
}

// A Shutdown waits for a child, which waits for a lock that the caller of Shutdown holds. The census reports this child, and no
// other.
func TestTheCensusSeesTheMembers(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	defer census.Start(census.Options{StuckAfter: -1})()
	ctx, end := context.WithCancel(bg)
	g := scope.Open(bg, scope.FirstError)
	var m mutex.Mutex
	done := make(chan error)
	go func() {
		m.Lock()
		defer m.Unlock()
		for _, child := range []func(context.Context) error{m.LockContext, forever} {
			g.Go(suspend.Goroutines, func(context.Context) error { return child(ctx) })
		}
		done <- g.Shutdown(bg)
	}()
	schedtest.Eventually(t, "a deadlock", func() bool {
		all := census.Take().Deadlocks
		return len(all) == 1 && len(all[0].Cycle) == 2
	})
	end()
	require.ErrorIs(t, <-done, context.Canceled)
}
