package runner

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/internal/coro"
	"github.com/braidgo/braid/suspend"
)

// careful returns a Runner of the calling goroutine in a careful period, and a function that runs it until no task is left.
// carried counts the steps outside, which are made at once.
func careful(stalls *coro.Stalls) (r *Runner, carried *int, run func()) {
	r, carried = New(nil, func() {}, nil, suspend.ErrClosed), new(int)
	r.Watch(stalls)
	r.Lease(time.Hour, nil)
	r.Own()
	r.lease.start = func(step func()) { *carried++; step() }
	r.lease.caution.beginPeriod(time.Now())
	return r, carried, func() {
		for r.Stats().Live > 0 {
			r.RunTurn()
		}
	}
}

// The next task of a coroutine has to prove itself again in the same careful period.
func TestANewTaskHasToProveItself(t *testing.T) {
	r, carried, run := careful(nil)
	for i := range 3 {
		_ = r.Go(func() {
			for range 5 {
				suspend.Yield()
			}
		})
		run()
		require.Equal(t, proofs*(i+1), *carried)
		require.Len(t, r.all, 1, "one coroutine")
	}
}

// A task returns from outside, and then holds the Runner. It is reported.
func TestATaskThatCameBackIsWatched(t *testing.T) {
	reports := make(chan struct{}, 1000)
	stalls := coro.WatchStalls(time.Millisecond, func(stack []byte) {
		if bytes.Contains(stack, []byte("holdsTheRunner")) {
			reports <- struct{}{}
		}
	})
	defer stalls.Stop()
	r, carried, run := careful(stalls)
	_ = r.Go(func() {
		for range proofs {
			suspend.Yield()
		}
		require.Equal(t, proofs, *carried)
		holdsTheRunner(t, reports)
	})
	run()
	require.Equal(t, proofs, *carried)
}
