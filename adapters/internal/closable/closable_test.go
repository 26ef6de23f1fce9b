package closable

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/promise"
)

func TestCounter(t *testing.T) {
	var c Counter
	require.True(t, c.Enter())
	require.True(t, c.Enter())
	require.False(t, c.Leave(), "an open Counter does not end")
	require.False(t, c.CloseIfDone(), "one is left")
	first, last := c.Close()
	require.True(t, first)
	require.False(t, last)
	require.False(t, c.Enter(), "closed")
	require.EqualValues(t, 1, c.Live())
	require.False(t, c.Done())
	first, last = c.Close()
	require.False(t, first || last, "a second Close changes nothing")
	require.True(t, c.Leave(), "the last one")
	require.True(t, c.Done())
	require.Zero(t, c.Live())

	var empty Counter
	first, last = empty.Close()
	require.True(t, first && last)
	require.True(t, empty.Done())
	var done Counter
	require.True(t, done.CloseIfDone())
	require.False(t, done.CloseIfDone(), "once")
	var left Counter
	require.True(t, left.Enter())
	left.Abandon()
	require.True(t, left.Done())
	require.False(t, left.Enter())
}

// In any order of Enter, Leave and Close, exactly one of them reports the end, and nothing is accepted after it.
func TestOneSeesTheEnd(t *testing.T) {
	for range 50 {
		var c Counter
		var ends, entered atomic.Int32
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for c.Enter() {
					if entered.Add(1); c.Leave() {
						ends.Add(1)
					}
				}
			})
		}
		all.Go(func() {
			for entered.Load() < 10 {
				runtime.Gosched()
			}
			if _, last := c.Close(); last {
				ends.Add(1)
			}
		})
		all.Wait()
		require.EqualValues(t, 1, ends.Load())
		require.True(t, c.Done())
	}
}

// If both have come, Wait returns the result of the end, not the cancellation.
func TestWait(t *testing.T) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	oops := errors.New("oops")
	var left, gone, failed promise.Promise[struct{}]
	gone.Fill(struct{}{})
	failed.Fail(oops)
	require.ErrorIs(t, Wait(over, &left), context.Canceled)
	require.NoError(t, Wait(over, &gone))
	require.Equal(t, oops, Wait(over, &failed))
	require.Equal(t, oops, Wait(context.Background(), &failed))
}
