package scope_test

import (
	"context"
	"testing"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/suspend"
)

// A nil argument panics in the call that passes it, and not later on a scheduler. A nil hook once ended the release silently, and the
// hooks before it never ran; a nil child ended the process.
func TestNilPanicsAtOnce(t *testing.T) {
	released, on := 0, suspend.Goroutines
	schedtest.Panics(t, "scope: Run of a nil function", func() { _ = scope.Run(bg, nil) })
	if err := scope.Run(bg, func(_ context.Context, s *scope.Scope) error {
		s.OnRelease(func() { released++ })
		schedtest.Panics(t, "scope: OnRelease of a nil function", func() { s.OnRelease(nil) })
		s.OnRelease(func() { released++ })
		schedtest.Panics(t, "scope: nil function", func() { _ = s.Go(on, nil) })
		schedtest.Panics(t, "scope: nil function", func() { _ = s.On(on).Go(nil) })
		schedtest.Panics(t, "scope: nil Spawner", func() { _ = s.Go(nil, func(context.Context) error { return nil }) })
		schedtest.Panics(t, "scope: nil Spawner", func() { s.On(nil) })
		return nil
	}); err != nil || released != 2 {
		t.Errorf("Run = %v, %d of 2 hooks ran", err, released)
	}
	schedtest.Panics(t, "scope: nil function", func() { _, _ = scope.Map[int, int](bg, on, nil, nil) })
	schedtest.Panics(t, "scope: nil Spawner", func() {
		_, _ = scope.Map(bg, nil, []int{1}, func(context.Context, int) (int, error) { return 0, nil })
	})
	schedtest.Panics(t, "scope: nil function", func() { _, _ = scope.First[int](bg, on, nil) })
}
