package suspendtest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
)

// A Sleep in the block of a Suspend panics, on any scheduler and under Explore.
func TestASleepInABlock(t *testing.T) {
	wrong := func() {
		_, _ = suspend.Suspend(context.Background(), func(suspend.Resumer[int]) (int, bool) {
			_ = suspend.Sleep(context.Background(), 1)
			return 1, true
		})
	}
	require.Panics(t, wrong, "a goroutine does not notice")
	text := explored(t, func(w *suspendtest.World) { w.Go("a", func(context.Context) { wrong() }) }, suspendtest.ExploreOptions{})
	require.Contains(t, text, "has failed")
}
