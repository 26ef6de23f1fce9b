package simulation_test

import (
	"context"
	"testing"
	"time"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
	"github.com/stretchr/testify/require"
)

func TestATaskThatIsCrashedByTheNodeItCrashesEnds(t *testing.T) {
	run(t, func(ctx context.Context, w *simulation.World) error {
		a, b, ended := w.Node("a"), w.Node("b"), 0
		_ = b.Go(func() {
			defer func() { ended++ }()
			defer a.Crash()
			waitForever()
		})
		_ = a.Go(func() {
			defer func() { ended++ }()
			_ = suspend.Sleep(ctx, time.Second)
			b.Crash()
			t.Error("a task has continued after the crash of its node")
		})
		_ = suspend.Sleep(ctx, time.Minute)
		require.True(t, a.Crashed())
		require.True(t, b.Crashed())
		require.Equal(t, 2, ended)
		return nil
	})
}

// The scope of the first task waits for a child on its own node, and for one on another node.
func TestAScopeReleasesAfterItsChildrenHaveEnded(t *testing.T) {
	for _, crash := range []bool{true, false} {
		children, released := 0, 0
		run(t, func(ctx context.Context, w *simulation.World) error {
			n := w.Node("n")
			on := func(from suspend.Spawner, to *simulation.Node) {
				_ = from.Go(func() {
					_ = scope.Run(ctx, func(ctx context.Context, s *scope.Scope) error {
						s.OnRelease(func() { released += children })
						s.Go(to, func(ctx context.Context) error {
							defer func() { children++ }()
							return suspend.Sleep(ctx, time.Hour)
						})
						return nil
					})
				})
			}
			if on(n, n); !crash {
				on(w, n)
				on(w.Node("other"), n)
			}
			_ = suspend.Sleep(ctx, time.Second)
			if crash {
				n.Crash()
			}
			return nil
		})
		if crash {
			require.Equal(t, 1, released)
		} else {
			require.Equal(t, 3, children)
			require.GreaterOrEqual(t, released, 1+2+3, "each release comes after the end of its child")
		}
	}
}

// A deferred function waits for a promise that the last of many deferred functions fills. It must not be ended before.
func TestADeferWaitsForAllTasksThatEnd(t *testing.T) {
	for _, first := range []bool{true, false} {
		clean := false
		run(t, func(ctx context.Context, w *simulation.World) error {
			n, left, all := w.Node("n"), 200, promise.New[int]()
			supervise := func() {
				_ = n.Go(func() {
					defer func() { _, _ = all.Await(ctx); clean = true }()
					waitForever()
				})
				_ = suspend.Sleep(ctx, time.Millisecond)
			}
			if first {
				supervise()
			}
			for range left {
				_ = n.Go(func() {
					defer func() {
						if left--; left == 0 {
							_ = all.Fill(0)
						}
					}()
					waitForever()
				})
			}
			_ = suspend.Sleep(ctx, time.Second)
			if !first {
				supervise()
			}
			n.Crash()
			return nil
		})
		require.True(t, clean, "the supervisor is the first: %v", first)
	}
}

// A deferred function that never ends does not stop the World.
func TestADeferThatYieldsForEverIsEnded(t *testing.T) {
	run(t, func(ctx context.Context, w *simulation.World) error {
		n, ended := w.Node("n"), false
		_ = n.Go(func() {
			defer func() { ended = true }()
			defer func() {
				for {
					suspend.Yield()
				}
			}()
			waitForever()
		})
		_ = suspend.Sleep(ctx, time.Second)
		n.Crash()
		require.True(t, ended)
		return nil
	})
}

// Timers and watches of the first life of a node do not call anything in the second life.
func TestNothingOfTheFirstLifeIsCalledInTheSecond(t *testing.T) {
	for name, set := range map[string]func(n *simulation.Node, called func()){
		"a timer of a defer": func(n *simulation.Node, called func()) {
			_ = n.Go(func() {
				defer func() { suspend.AfterFunc(suspend.Here(), time.Minute, called) }()
				waitForever()
			})
			_ = suspend.Sleep(bg, time.Second)
			n.Crash()
		},
		"a timer of a crashed node": func(n *simulation.Node, called func()) {
			n.Crash()
			stop := suspend.AfterFunc(n, time.Minute, called)
			require.False(t, stop())
		},
		"the end of a context": func(n *simulation.Node, called func()) {
			ctx, end := context.WithCancel(bg)
			simulation.Here().AfterFunc(time.Minute, end)
			_ = n.Go(func() {
				cancel.AfterFunc(ctx, called)
				waitForever()
			})
			_ = suspend.Sleep(bg, time.Second)
			n.Crash()
		},
		"the end of a context, registered in a defer": func(n *simulation.Node, called func()) {
			ctx, end := context.WithCancel(bg)
			simulation.Here().AfterFunc(time.Minute, end)
			_ = n.Go(func() {
				defer func() { cancel.AfterFunc(ctx, called) }()
				waitForever()
			})
			_ = suspend.Sleep(bg, time.Second)
			n.Crash()
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(ctx context.Context, w *simulation.World) error {
				n := w.Node("n")
				set(n, func() { t.Error("it was called") })
				n.Restart(func(context.Context) {})
				return suspend.Sleep(ctx, time.Hour)
			})
		})
	}
}

func TestATaskMayRestartItsOwnNode(t *testing.T) {
	run(t, func(ctx context.Context, w *simulation.World) error {
		n := w.Node("n")
		var lives []string
		first := func() {
			defer func() { lives = append(lives, "ended") }()
			n.Restart(func(context.Context) { lives = append(lives, "begun") })
			t.Error("Restart has returned to a task of the node")
		}
		_ = n.Go(first)
		_ = suspend.Sleep(ctx, time.Minute)
		require.False(t, n.Crashed())
		require.Equal(t, []string{"ended", "begun"}, lives)
		return nil
	})
}

// The test covers a supervisor of the node, and a node that crashes during the crash of another one.
func TestARestartInADeferOfACrash(t *testing.T) {
	run(t, func(ctx context.Context, w *simulation.World) error {
		a, b := w.Node("a"), w.Node("b")
		begun := 0
		main := func(context.Context) { begun++ }
		_ = a.Go(func() {
			defer a.Restart(main)
			defer b.Crash()
			waitForever()
		})
		_ = b.Go(func() {
			defer a.Restart(main)
			waitForever()
		})
		_ = suspend.Sleep(ctx, time.Second)
		a.Crash()
		require.True(t, a.Crashed())
		_ = suspend.Sleep(ctx, time.Minute)
		require.False(t, a.Crashed())
		require.Equal(t, 2, begun)
		return nil
	})
}

func TestRestartRefusesNil(t *testing.T) {
	run(t, func(_ context.Context, w *simulation.World) error {
		require.PanicsWithValue(t, "simulation: Restart with a nil function", func() { w.Node("n").Restart(nil) })
		require.False(t, w.Node("n").Crashed())
		return nil
	})
}
