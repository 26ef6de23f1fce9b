package eventloop_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/internal/testrig/schedtest"
)

// A task outside ends by Goexit, and the reactor takes its coroutine back while another task has locked the reactor's thread. The
// runtime would end the process if that task ended the coroutine.
func TestATaskThatHasLockedItsThreadTakesOneBack(t *testing.T) {
	l := open(t, eventloop.Options{HandOver: 5 * time.Millisecond, StallAfter: -1})
	for range 3 {
		release, gone := make(chan struct{}), make(chan struct{})
		require.NoError(t, l.Go(func() { <-release; defer close(gone); runtime.Goexit() }))
		schedtest.Eventually(t, "the task is outside", func() bool { return l.Stats().Outside == 1 })
		time.Sleep(100 * time.Millisecond) // after the careful period, the next task runs on the reactor
		task(t, l, func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			close(release)
			<-gone
			for began := time.Now(); time.Since(began) < time.Millisecond; { // waits for the message of the task outside
			}
			require.NoError(t, l.Go(func() {}))
		})
	}
	schedtest.Eventually(t, "all have ended", func() bool { return l.Stats().Live == 0 })
}

// OnStall passes its report to a task of the loop, which cannot run because another task waits for it natively. The hand-over
// must not wait for OnStall.
func TestAReportThatBlocksDoesNotHoldUpAHandOver(t *testing.T) {
	reports, over := make(chan []byte), make(chan struct{})
	defer close(over)
	l := open(t, eventloop.Options{HandOver: 50 * time.Millisecond, StallAfter: 10 * time.Millisecond, OnStall: func(report []byte) {
		select {
		case reports <- report:
		case <-over:
		}
	}})
	done := make(chan struct{})
	within(t, func() {
		require.NoError(t, l.Go(func() { <-done }))
		require.NoError(t, l.Go(func() { <-reports; close(done) }))
		<-done
		schedtest.Eventually(t, "all have ended", func() bool { return l.Stats().Live == 0 })
	})
}
