package fifo_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// A server may call Run for each request. Nine of these allocations are for the coroutine of main.
func TestAnEmptyRunAllocatesLittle(t *testing.T) {
	got := testing.AllocsPerRun(100, func() {
		_ = fifo.New(fifo.Options{StallAfter: -1}).Run(bg, func(context.Context) error { return nil })
	})
	if !schedtest.Race && got > 11 {
		t.Errorf("%v allocations", got)
	}
}

// Thousands of Runs leave no goroutine behind. Kept coroutines end soon, and there are at most 8,192 of them. Otherwise a server
// that calls Run for each request would grow without limit.
func TestThousandsOfRuns(t *testing.T) {
	const kept = 8192
	runs := 3_000
	if schedtest.Race || testing.Short() {
		runs = 1_000
	}
	before := runtime.NumGoroutine()
	for n := range runs {
		tasks := 3
		if n%10 == 0 {
			tasks = 100 // enough to use kept coroutines
		}
		if n == runs/2 && !testing.Short() { // slow if goroutine ids are not available
			tasks = kept + 1000
		}
		s := fifo.New(fifo.Options{})
		begun := promise.New[int]()
		require.NoError(t, s.Run(bg, func(ctx context.Context) error {
			for range tasks {
				if err := s.Go(func() { _, _ = begun.Await(bg) }); err != nil {
					return err
				}
			}
			suspend.Yield()
			begun.Fill(n)
			return nil
		}))
		if n%100 == 0 { // coroutines above the limit end by themselves, after the Run
			schedtest.Eventually(t, "at most 8,192 coroutines are kept", func() bool { return runtime.NumGoroutine() <= before+kept })
		}
	}
	schedtest.Eventually(t, "the coroutines are given back", func() bool { return runtime.NumGoroutine() <= before+2 })
}
