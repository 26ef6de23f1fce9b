package schedtest_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// Quiet returns when all tasks wait, and no earlier.
func TestQuiet(t *testing.T) {
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		const tasks, steps = 60, 200
		var gate promise.Promise[int]
		at := make([]atomic.Int32, tasks)
		ended := make(chan struct{}, tasks)
		for i := range tasks {
			_ = next().Go(func() {
				for range steps {
					at[i].Add(1)
					suspend.Yield()
				}
				_, _ = gate.Await(context.Background())
				ended <- struct{}{}
			})
		}
		schedtest.Quiet(t)
		for i := range at {
			if n := at[i].Load(); n != steps {
				t.Errorf("task %d is at %d", i, n)
			}
		}
		_ = gate.Fill(1)
		for range tasks {
			<-ended
		}
	})
}
