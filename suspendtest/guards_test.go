package suspendtest_test

import (
	"context"
	"testing"

	"github.com/braidgo/braid/fetch"
	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
)

// Explore switches tasks at guards. If a task held a native lock there, Explore would hang.
func TestNoNativeLockIsHeldAtAGuard(t *testing.T) {
	suspendtest.Explore(t, func(w *suspendtest.World) {
		src := fetch.Shared(fetch.New("s", func(context.Context, *fetch.Batch[int, int]) error { return nil }, fetch.SourceOptions{}), 1)
		for _, name := range []string{"a", "b"} {
			w.Go(name, func(ctx context.Context) { _ = src.Shutdown(ctx) })
		}
	}, suspendtest.ExploreOptions{})
	suspendtest.Explore(t, func(w *suspendtest.World) {
		w.Go("main", func(context.Context) {
			p := stage.NewPool("p", 1, suspend.Here())
			for range 2 {
				_ = suspend.Here().Go(func() { _ = p.Go(func() {}) })
			}
		})
	}, suspendtest.ExploreOptions{Executions: 2000})
}
