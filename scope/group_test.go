package scope_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/suspend"
)

// The table has the error of each Group, by what its children and its owner do.
func TestEndsOfAGroup(t *testing.T) {
	other := errors.New("other")
	for name, c := range map[string]struct {
		policy scope.Policy
		do     func(g *scope.Group, on suspend.Spawner, end func()) error
		want   []error // nil for no error
	}{
		"nothing was started": {do: func(g *scope.Group, _ suspend.Spawner, _ func()) error { return g.Close() }},
		"Close cancels": {do: func(g *scope.Group, on suspend.Spawner, _ func()) error {
			g.Go(on, forever)
			return g.Close()
		}},
		"Shutdown waits": {do: func(g *scope.Group, on suspend.Spawner, _ func()) error {
			gate := promise.New[int]()
			g.Go(on, func(ctx context.Context) error { _, err := gate.Await(ctx); return err })
			_ = on.Go(func() { schedtest.Settle(); _ = gate.Fill(1) })
			return g.Shutdown(bg)
		}},
		"Shutdown is late": {do: func(g *scope.Group, on suspend.Spawner, _ func()) error {
			ctx, cancel := schedtest.WithCancel()
			g.Go(on, forever)
			_ = on.Go(cancel)
			return g.Shutdown(ctx)
		}, want: []error{context.Canceled}},
		"a failure ends the others": {do: func(g *scope.Group, on suspend.Spawner, _ func()) error {
			g.Go(on, forever)
			g.Go(on, func(context.Context) error { return errOops })
			return g.Shutdown(bg)
		}, want: []error{errOops}},
		"failures are collected": {scope.Collect, func(g *scope.Group, on suspend.Spawner, _ func()) error {
			g.Go(on, func(context.Context) error { return errOops })
			g.Go(on, func(ctx context.Context) error {
				schedtest.Settle()
				return errors.Join(other, suspend.Err(ctx)) // Err returns nil here
			})
			g.Go(on, func(context.Context) error { runtime.Goexit(); return nil })
			return g.Shutdown(bg)
		}, []error{errOops, other, suspend.ErrAbandoned}},
		"the context ends": {do: func(g *scope.Group, on suspend.Spawner, end func()) error {
			g.Go(on, forever)
			end()
			return g.Shutdown(bg)
		}, want: []error{context.Canceled}},
	} {
		t.Run(name, func(t *testing.T) {
			schedtest.OnFIFO(t, func(on *fifo.Scheduler) {
				ctx, end := schedtest.WithCancel()
				g := scope.Open(ctx, c.policy)
				released := 0
				g.OnRelease(func() { released++ })
				err := c.do(g, on, end)
				require.Equal(t, len(c.want) > 0, err != nil, "%v", err)
				for _, want := range c.want {
					require.ErrorIs(t, err, want)
				}
				require.Equal(t, err, g.Close(), "a later Close")
				end()
				require.Equal(t, err, g.Shutdown(ctx), "after the end")
				require.Equal(t, 1, released)
				schedtest.Panics(t, "scope: Go after the end of the scope", func() { g.Go(on, forever) })
			})
		})
	}
}

// A Child can be cancelled alone, and has a result even if it never runs.
func TestChildren(t *testing.T) {
	schedtest.OnFIFO(t, func(on *fifo.Scheduler) {
		g, one := scope.Open(bg, scope.FirstError), scope.Limit(1, on)
		defer g.Close()
		wait := func(ctx context.Context) (int, error) { return 7, forever(ctx) }
		start := func(f func(context.Context) (int, error)) *scope.Child[int] { return scope.Start(g, one, f) }
		runs := start(wait)
		waits := start(func(context.Context) (int, error) { t.Error("it ran"); return 0, nil })
		quick := start(func(context.Context) (int, error) { return 1, nil })
		last, never := start(wait), start(wait)
		suspend.Yield()
		for _, c := range []*scope.Child[int]{waits, runs} {
			c.Cancel(errOops)
			_, err := c.Await(bg)
			require.ErrorIs(t, err, errOops)
			require.ErrorIs(t, err, context.Canceled)
		}
		v, err := quick.Await(bg)
		require.Equal(t, 1, v)
		require.NoError(t, err)
		schedtest.Settle() // the last child begins
		require.NoError(t, g.Close(), "a child that its handle has cancelled is not a failure")
		v, err = last.Await(bg)
		require.Equal(t, 7, v)
		require.ErrorIs(t, err, context.Canceled)
		_, err = suspend.Do(bg, never.AwaitOp())
		require.ErrorIs(t, err, context.Canceled)
		_, err = scope.Start(g, on, wait).Await(bg)
		require.ErrorIs(t, err, suspend.ErrEnded)
	})
}

func TestFailuresOfChildren(t *testing.T) {
	for want, f := range map[error]func(context.Context) (int, error){
		errOops:              func(context.Context) (int, error) { return 0, errOops },
		suspend.ErrAbandoned: func(context.Context) (int, error) { runtime.Goexit(); return 0, nil },
	} {
		schedtest.OnFIFO(t, func(on *fifo.Scheduler) {
			g := scope.Open(bg, scope.FirstError)
			c := scope.Start(g, on, f)
			g.Go(on, forever)
			_, err := c.Await(bg)
			require.ErrorIs(t, err, want)
			c.Cancel(nil) // too late to have an effect
			require.Equal(t, err, g.Shutdown(bg))
		})
	}
}

// Children are started, cancelled and awaited while several tasks close the Group. None outlives a Close, each handle has a
// result, and each started child has run or was cancelled.
func TestGroupUnderStress(t *testing.T) {
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		var ran, refused, cancelled atomic.Int64
		covered := func() bool { return ran.Load() > 0 && refused.Load() > 0 && cancelled.Load() > 0 }
		for round := 0; schedtest.More(round, 100, covered); round++ {
			g := scope.Open(bg, scope.Policy(round%2))
			var live atomic.Int64
			on := make([]suspend.Spawner, 6)
			for i := range on {
				if on[i] = next(); i%2 == 0 {
					on[i] = scope.Limit(1, on[i])
				}
			}
			schedtest.Stress(t, next, 8, func(i int, rng *rand.Rand) {
				for k := range 5 {
					if i < 2 && k == 3 {
						if err := g.Close(); err != nil || live.Load() != 0 {
							t.Errorf("Close: %v, %d live", err, live.Load())
						}
					}
					c := scope.Start(g, on[rng.IntN(len(on))], func(ctx context.Context) (int, error) {
						live.Add(1)
						defer live.Add(-1)
						suspend.Yield()
						return 1, suspend.Err(ctx)
					})
					if rng.IntN(3) == 0 {
						c.Cancel(nil)
					}
					switch v, err := c.Await(bg); {
					case err == nil && v == 1:
						ran.Add(1)
					case errors.Is(err, suspend.ErrEnded):
						refused.Add(1)
					case errors.Is(err, context.Canceled):
						cancelled.Add(1)
					default:
						t.Errorf("%d, %v", v, err)
					}
				}
			})
		}
	})
}

func ExampleOpen() {
	jobs := scope.Open(context.Background(), scope.Collect) // in the constructor
	two := scope.Limit(2, suspend.Goroutines)
	for n := range 3 {
		jobs.Go(two, func(context.Context) error {
			if n == 1 {
				return errors.New("job 1 has failed")
			}
			return nil
		})
	}
	fmt.Println(jobs.Shutdown(context.Background())) // in Close; jobs.Close() would cancel the jobs
	// Output: job 1 has failed
}

func ExampleStart() {
	g := scope.Open(context.Background(), scope.FirstError)
	defer g.Close()
	sum := scope.Start(g, nil, func(context.Context) (int, error) { return 40 + 2, nil })
	clock := scope.Start(g, nil, func(ctx context.Context) (int, error) { return 0, forever(ctx) })
	clock.Cancel(errors.New("no more ticks"))
	fmt.Println(sum.Await(context.Background()))
	fmt.Println(clock.Await(context.Background()))
	// Output:
	// 42 <nil>
	// 0 no more ticks
}
