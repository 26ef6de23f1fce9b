package scope_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/suspend"
)

// If the context of a Shutdown panics, Shutdown cancels the children before it waits for them.
func TestShutdownPanics(t *testing.T) {
	for name, ctx := range map[string]func() context.Context{
		"nil":    func() context.Context { return nil },
		"panics": func() context.Context { return schedtest.Panicky(bg, 1, true) },
	} {
		t.Run(name, func(t *testing.T) {
			g := scope.Open(bg, scope.FirstError)
			g.Go(suspend.Goroutines, forever)
			ended := make(chan any, 1)
			go func() {
				defer func() { ended <- recover() }()
				_ = g.Shutdown(ctx())
			}()
			select {
			case v := <-ended:
				t.Log(v)
			case <-time.After(schedtest.Deadline):
				t.Error("Shutdown hangs, and its panic is not seen")
				g.Cancel(nil)
			}
		})
	}
}

// A function of OnRelease that panics does not hide the failure from later calls.
func TestReleasePanics(t *testing.T) {
	g := scope.Open(bg, scope.FirstError)
	g.OnRelease(func() { panic("release") })
	c := scope.Start(g, suspend.Goroutines, func(context.Context) (int, error) { return 0, errOops })
	_, _ = c.Await(bg)
	schedtest.Panics(t, "release", func() { _ = g.Shutdown(bg) })
	if err := g.Close(); err != errOops {
		t.Errorf("a later Close returned %v", err)
	}
}

// A function of OnRelease closes its own Group, as happens if a service closes another service, which closes the first.
func TestCloseInARelease(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
		schedtest.Run(t, on, func() {
			g := scope.Open(bg, scope.FirstError)
			ctx, cancel := context.WithCancel(bg)
			cancel()
			var released []error
			g.OnRelease(func() { released = append(released, g.Close(), g.Shutdown(ctx)) })
			c := scope.Start(g, on, func(context.Context) (int, error) { return 0, errOops })
			_, _ = c.Await(bg)
			if err := g.Close(); err != errOops || len(released) != 2 || released[0] != errOops || released[1] != errOops {
				t.Error(err, released)
			}
		})
	})
}

type broken struct{}

func (broken) Go(func()) error { panic("broken") }

// If Start panics, it leaves nothing behind in the context of the Group.
func TestStartThatPanics(t *testing.T) {
	g := scope.Open(bg, scope.FirstError)
	defer g.Close()
	const n = 20_000
	before := liveObjects()
	for range n {
		schedtest.Panics(t, "broken", func() { scope.Start(g, broken{}, func(context.Context) (int, error) { return 0, nil }) })
	}
	if more := liveObjects() - before; more > n/2 {
		t.Errorf("%d objects more after %d Starts", more, n)
	}
}

// Collect joins the failures in a flat list.
func TestCollectMany(t *testing.T) {
	const n = 1000
	g := scope.Open(bg, scope.Collect)
	for i := range n {
		g.Go(scope.Limit(1, suspend.Goroutines), func(context.Context) error { return fmt.Errorf("the failure %d", i) })
	}
	err := g.Shutdown(bg)
	if m, ok := err.(interface{ Unwrap() []error }); !ok || len(m.Unwrap()) != n {
		t.Errorf("%d errors in the join of %d", len(m.Unwrap()), n)
	}
}

// Every Close returns the same error, on the goroutine of the first Shutdown and on others.
func TestEachCloseHasTheSameError(t *testing.T) {
	g := scope.Open(bg, scope.Collect)
	for range 2 {
		g.Go(suspend.Goroutines, func(context.Context) error { return errOops })
	}
	first := g.Shutdown(bg)
	g.Cancel(context.DeadlineExceeded)
	second, other := g.Close(), make(chan error)
	go func() { other <- g.Close() }()
	if third := <-other; first == nil || second != first || third != first {
		t.Errorf("%p, %p, %p", first, second, third)
	}
}

// While a Shutdown waits for the children, a Close cancels them, and so does a second Shutdown whose context ends.
func TestAShutdownIsCutShort(t *testing.T) {
	for name, end := range map[string]func(g *scope.Group) error{
		"by a Close": func(g *scope.Group) error { return g.Close() },
		"by a Shutdown": func(g *scope.Group) error {
			ctx, stop := context.WithTimeout(bg, time.Second)
			defer stop()
			err := g.Shutdown(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, first := scope.Open(bg, scope.FirstError), make(chan error, 1)
				g.Go(suspend.Goroutines, forever)
				go func() { first <- g.Shutdown(bg) }()
				synctest.Wait()
				err := end(g)
				require.Equal(t, err, <-first)
			})
		})
	}
}

// A Group lives as long as its service while children come and go, so a child that has ended must leave no memory behind.
func TestAChildLeavesNothing(t *testing.T) {
	g, before := scope.Open(bg, scope.FirstError), int64(0)
	defer g.Close()
	const n = 20_000
	for i := range 2 * n {
		if i == n {
			before = liveObjects()
		}
		c := scope.Start(g, suspend.Goroutines, func(context.Context) (int, error) { return 1, nil })
		_, _ = c.Await(bg)
	}
	require.Less(t, liveObjects()-before, int64(n/2))
}

func liveObjects() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapObjects)
}
