package suspend_test

import (
	"testing"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
	"github.com/stretchr/testify/require"
)

// A Pull runs inside the body of another Pull, and its body calls the yield of the outer one. The outer next then returns first.
// The task that calls next again continues in the inner body, and lends its binding to the body. The first task must keep its own
// binding: without it, a wait of this task would block its scheduler.
func TestPullYieldOfAnOuterPull(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		var inside, goOn, left, done promise.Promise[int]
		next, stop := suspend.Pull(func(yield func(suspend.Task) bool) {
			inner, end := suspend.Pull(func(yieldInner func(int) bool) {
				yield(suspend.Current())
				_ = inside.Fill(0)
				_, _ = goOn.Await(bg) // blocks the scheduler if the task has lost its binding
				yield(suspend.Current())
				yieldInner(0)
			})
			defer end()
			inner()
			yield(suspend.Current())
		})
		mine := func(what string) {
			task, ok := next()
			require.True(t, ok)
			require.True(t, task == suspend.Current(), what)
		}
		schedtest.Run(t, s, func() {
			task := suspend.Current()
			mine("the first call")
			require.True(t, task == suspend.Current(), "after the first call")
			_ = left.Fill(0)
			_, _ = done.Await(bg)
			require.True(t, task == suspend.Current(), "after the inner body has ended on another task")
			suspend.Yield()
		}, func() {
			_, _ = left.Await(bg)
			mine("in the inner body")
			mine("in the outer body")
			stop()
			_ = done.Fill(0)
		}, func() {
			_, _ = inside.Await(bg)
			_ = goOn.Fill(0)
		})
	})
}

// The first call of next may come from a goroutine without a task.
func TestPullYieldOfAnOuterPullOffEveryTask(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		next, stop := suspend.Pull(func(yield func(suspend.Task) bool) {
			inner, end := suspend.Pull(func(func(int) bool) {
				yield(suspend.Current())
				yield(suspend.Current())
			})
			defer end()
			inner()
		})
		task, ok := next()
		require.True(t, ok && task == nil)
		schedtest.Run(t, s, func() {
			task, ok := next()
			require.True(t, ok && task == suspend.Current(), "the inner body has no task")
			suspend.Yield()
			stop()
		})
	})
}
