package scope_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/suspend"
)

// A Group that collects its failures reports its cancellation once, not for each child that never ran because of it, and not
// at all if it reports the cause of a Cancel. It reports all failures of children that ran, including cancellation errors.
func TestACancellationIsCollectedOnce(t *testing.T) {
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		end  func(g *scope.Group, stop func())
		want []error // in addition to the failures of two children that ran
	}{
		"the context ends":      {func(_ *scope.Group, stop func()) { stop() }, []error{context.Canceled}},
		"Cancel, and the end":   {func(g *scope.Group, stop func()) { g.Cancel(boom); stop() }, []error{boom}},
		"the end, and a Cancel": {func(g *scope.Group, stop func()) { stop(); g.Cancel(boom) }, []error{context.Canceled, boom}},
		"Cancel(nil)":           {func(g *scope.Group, _ func()) { g.Cancel(nil) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
				ctx, stop := context.WithCancel(bg)
				defer stop()
				g := scope.Open(ctx, scope.Collect)
				for range 2 {
					g.Go(on, func(ctx context.Context) error { _ = forever(ctx); return errOops })
				}
				var gate promise.Promise[int]
				defer gate.Fill(1)
				one := scope.Limit(1, on)
				require.NoError(t, one.Go(func() { _, _ = gate.Await(bg) }))
				for range 3 {
					startIn(g, one)
					scope.Start(g, one, none)
				}
				c.end(g, stop)
				for range 3 {
					startIn(g, on)
					_, err := scope.Start(g, on, none).Await(bg)
					require.ErrorIs(t, err, context.Canceled)
				}
				collected(t, g.Shutdown(bg), append(c.want, errOops, errOops)...)
			})
		})
	}
}

// The same holds for children with a handle that their scheduler begins too late.
func TestACancellationOfChildrenThatBeginLate(t *testing.T) {
	schedtest.OnFIFO(t, func(on *fifo.Scheduler) {
		ctx, stop := context.WithCancel(bg)
		g := scope.Open(ctx, scope.Collect)
		for range 3 {
			scope.Start(g, on, none)
		}
		stop()
		require.Equal(t, context.Canceled, g.Shutdown(bg))
	})
}

// A refusal cancels the scope in the call of Go or Start, so the caller must not hold a lock that a function of its context takes. A
// Group that collects is not cancelled.
func TestARefusalCancelsInTheCall(t *testing.T) {
	full := spawnerFunc(func(func()) error { return errOops })
	for name, start := range map[string]func(of scope.Parent){
		"Go":    func(of scope.Parent) { startIn(of, full) },
		"Start": func(of scope.Parent) { scope.Start(of, full, none) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, policy := range []scope.Policy{scope.FirstError, scope.Collect} {
				g, called := scope.Open(bg, policy), false
				scope.Start(g, nil, func(ctx context.Context) (int, error) {
					cancel.AfterFunc(ctx, func() { called = true })
					start(g)
					require.Equal(t, policy == scope.FirstError, called)
					return 0, nil
				})
				require.ErrorIs(t, g.Shutdown(bg), errOops)
			}
		})
	}
}

// A Go that panics in its Spawner leaves no failure behind.
func TestAGoThatPanicsIsNoFailure(t *testing.T) {
	require.NoError(t, scope.Run(bg, func(ctx context.Context, s *scope.Scope) error {
		schedtest.Panics(t, "broken", func() { startIn(s, broken{}) })
		schedtest.Panics(t, "broken", func() { scope.Start(s, broken{}, none) })
		return suspend.Err(ctx)
	}))
}

func none(context.Context) (int, error) { panic("it ran") }

// collected compares the failures in err with want, in any order.
func collected(t *testing.T, err error, want ...error) {
	t.Helper()
	all, ok := err.(interface{ Unwrap() []error })
	require.True(t, ok, "%v", err)
	require.Len(t, all.Unwrap(), len(want), "%v", err)
	for _, w := range want {
		require.ErrorIs(t, err, w)
	}
}
