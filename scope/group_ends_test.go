package scope_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/suspend"
)

// A context that panics in Shutdown is no reason to wait for children that nobody cancels.
func TestShutdownPanics(t *testing.T) {
	for name, ctx := range map[string]func() context.Context{
		"nil":    func() context.Context { return nil },
		"panics": func() context.Context { return schedtest.Panicky(bg, 1, true) },
	} {
		t.Run(name, func(t *testing.T) {
			g := scope.Open(bg, scope.FirstError)
			_ = g.Go(suspend.Goroutines, forever)
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
	c, _ := scope.Start(g.Scope, suspend.Goroutines, func(context.Context) (int, error) { return 0, errOops })
	_, _ = c.Await(bg)
	schedtest.Panics(t, "release", func() { _ = g.Shutdown(bg) })
	if err := g.Close(); err != errOops {
		t.Errorf("a later Close returned %v", err)
	}
}

// Collect joins the failures side by side.
func TestCollectMany(t *testing.T) {
	const n = 1000
	g := scope.Open(bg, scope.Collect)
	for i := range n {
		_ = g.Go(scope.Limit(1, suspend.Goroutines), func(context.Context) error { return fmt.Errorf("the failure %d", i) })
	}
	err := g.Shutdown(bg)
	if m, ok := err.(interface{ Unwrap() []error }); !ok || len(m.Unwrap()) != n {
		t.Errorf("%d errors in the join of %d", len(m.Unwrap()), n)
	}
}
