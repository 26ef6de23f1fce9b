package scope_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/suspend"
)

// A nil function panics in the call that passes it. Otherwise a nil child would panic later in a scheduler, and a nil hook would
// keep the hooks before it from running.
func TestNilPanicsAtOnce(t *testing.T) {
	released, on := 0, suspend.Goroutines
	schedtest.Panics(t, "scope: Run with a nil function", func() { _ = scope.Run(bg, nil) })
	if err := scope.Run(bg, func(_ context.Context, s *scope.Scope) error {
		s.OnRelease(func() { released++ })
		schedtest.Panics(t, "scope: OnRelease with a nil function", func() { s.OnRelease(nil) })
		s.OnRelease(func() { released++ })
		schedtest.Panics(t, "scope: nil function", func() { s.Go(on, nil) })
		schedtest.Panics(t, "scope: nil function", func() { _ = s.On(on).Go(nil) })
		schedtest.Panics(t, "scope: nil function", func() { scope.Start[int](s, on, nil) })
		return nil
	}); err != nil || released != 2 {
		t.Errorf("Run = %v, %d of 2 hooks ran", err, released)
	}
	schedtest.Panics(t, "scope: nil function", func() { _, _ = scope.Map[int, int](bg, on, nil, nil) })
	schedtest.Panics(t, "scope: nil function", func() { scope.Lift[int](nil) })
	schedtest.Panics(t, "scope: nil function", func() { _, _ = scope.First[int](bg, on, nil) })
}

// A nil Spawner means plain goroutines, wherever a scheduler is expected.
func TestANilSpawnerIsGoroutines(t *testing.T) {
	schedtest.OnFIFO(t, func(*fifo.Scheduler) { // in a scheduler, so that a task would not be a plain goroutine
		plain := func(context.Context) (int, error) {
			require.Nil(t, suspend.Current())
			return 1, nil
		}
		ran := 0
		require.NoError(t, scope.Run(bg, func(ctx context.Context, s *scope.Scope) error {
			s.Go(nil, func(ctx context.Context) error { n, err := plain(ctx); ran += n; return err })
			return nil
		}))
		require.NoError(t, scope.Run(bg, func(ctx context.Context, s *scope.Scope) error {
			return s.On(nil).Go(func() { n, _ := plain(ctx); ran += n })
		}))
		g := scope.Open(bg, scope.FirstError)
		n, err := scope.Start(g, nil, plain).Await(bg)
		require.NoError(t, err)
		ran += n
		require.NoError(t, g.Close())
		out, err := scope.Map(bg, scope.Limit(1, nil), []int{1}, func(ctx context.Context, _ int) (int, error) { return plain(ctx) })
		require.NoError(t, err)
		ran += len(out)
		out, err = scope.Map(bg, nil, []int{1}, func(ctx context.Context, _ int) (int, error) { return plain(ctx) })
		require.NoError(t, err)
		ran += len(out)
		n, err = scope.First(bg, nil, plain)
		require.NoError(t, err)
		ran += n
		for n, err := range scope.Stream(bg, nil, 1, numbers(1), func(ctx context.Context, _ int) (int, error) { return plain(ctx) }) {
			require.NoError(t, err)
			ran += n
		}
		require.Equal(t, 7, ran)
	})
}
