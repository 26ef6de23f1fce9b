package scope_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/suspend"
)

// A function that was taken back does not run, and the others keep their order. The first call of stop returns true, and further
// calls return false.
func TestAReleaseIsTakenBack(t *testing.T) {
	for out := range 3 {
		order := ""
		var stops []func() bool
		require.NoError(t, scope.Run(bg, func(_ context.Context, s *scope.Scope) error {
			for _, name := range []string{"a", "b", "c"} {
				stops = append(stops, s.OnRelease(func() { order += name }))
			}
			require.True(t, stops[out]())
			require.False(t, stops[out](), "twice")
			return nil
		}))
		require.Equal(t, []string{"cb", "ca", "ba"}[out], order)
		for _, stop := range stops {
			require.False(t, stop(), "after the end")
		}
	}
}

// A function of OnRelease takes back itself, the one registered after it, the one registered before it, and one that it has
// registered.
func TestAReleaseTakesOthersBack(t *testing.T) {
	order := ""
	require.NoError(t, scope.Run(bg, func(_ context.Context, s *scope.Scope) error {
		var self, after func() bool
		before := s.OnRelease(func() { order += "before" })
		self = s.OnRelease(func() {
			order += "self"
			require.False(t, self())
			require.False(t, after())
			require.True(t, before())
			require.True(t, s.OnRelease(func() { order += "new" })())
		})
		after = s.OnRelease(func() { order += "after " })
		return nil
	}))
	require.Equal(t, "after self", order)
}

// A stop races with the end of the scope: a function has run if and only if its stop has returned false.
func TestAStopRacesWithTheEnd(t *testing.T) {
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		var inTime, late int
		covered := func() bool { return inTime > 0 && late > 0 }
		for round := 0; schedtest.More(round, 1000, covered); round++ {
			var ran, stopped atomic.Int64
			stranger := make(chan struct{})
			const n = 3
			require.NoError(t, scope.Run(bg, func(_ context.Context, s *scope.Scope) error {
				var stops []func() bool
				for range n {
					stops = append(stops, s.OnRelease(func() { ran.Add(1); suspend.Yield() }))
				}
				_ = next().Go(func() {
					defer close(stranger)
					for _, stop := range stops {
						if stop() {
							stopped.Add(1)
						}
						suspend.Yield()
					}
				})
				if round%2 == 0 {
					runtime.Gosched()
				}
				return nil
			}))
			<-stranger
			require.EqualValues(t, n, ran.Load()+stopped.Load())
			inTime += int(stopped.Load())
			late += int(ran.Load())
		}
		require.True(t, covered(), "%d in time, %d late", inTime, late)
	})
}

// A Group lives as long as its service while connections come and go. A function that was taken back, or has run, is freed, even
// if the program keeps its stop.
func TestAReleaseThatIsTakenBackLeavesNothing(t *testing.T) {
	var objects schedtest.Objects
	g := scope.Open(bg, scope.FirstError)
	var kept []func() bool
	register := func() (stop func() bool) {
		o := objects.New()
		stop = g.OnRelease(func() { runtime.KeepAlive(o) })
		kept = append(kept, stop)
		return stop
	}
	for range 10 {
		require.True(t, register()())
	}
	objects.Collected(t, 0)
	register()
	require.NoError(t, g.Close())
	objects.Collected(t, 0)

	g = scope.Open(bg, scope.FirstError)
	defer g.Close()
	const n = 20_000
	before := int64(0)
	for i := range 2 * n {
		if i == n {
			before = liveObjects()
		}
		g.OnRelease(func() {})()
	}
	require.Less(t, liveObjects()-before, int64(n/2))
	runtime.KeepAlive(kept)
}
