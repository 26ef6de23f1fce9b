package eventloop_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/suspend"
)

// Fifty tasks share a native semaphore of ten, and suspend three times while they hold it, so quick steps of one task do not
// prove that the next task will not block. Another task must not be delayed for long.
func TestHandOverOfTasksThatHaveProvedThemselves(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l := open(t, eventloop.Options{StallAfter: -1})
	var worst time.Duration
	over := make(chan bool)
	require.NoError(t, l.Go(func() {
		defer close(over)
		for begin := time.Now(); suspend.Sleep(ctx, time.Millisecond) == nil; begin = time.Now() {
			worst = max(worst, time.Since(begin))
		}
	}))
	native, ended := make(chan bool, 10), make(chan bool)
	for range 50 {
		require.NoError(t, l.Go(func() {
			for range 10 {
				native <- true
				for range 3 {
					_ = suspend.Sleep(ctx, time.Millisecond)
				}
				<-native
			}
			ended <- true
		}))
	}
	for range 50 {
		<-ended
	}
	cancel()
	<-over
	require.Less(t, worst, 500*time.Millisecond) // 1.4 s if the watch pauses after a hand-over
}
