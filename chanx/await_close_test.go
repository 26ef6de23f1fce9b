package chanx_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"reflect"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
)

// A channel is closed while its buffer still has a value. AwaitClose returns for waiters, for later callers, and as a case.
func TestAwaitClose(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		c, other := chanx.New[int](1), chanx.New[int](1)
		require.NoError(t, c.Send(bg, 7))
		closed, otherwise := suspend.CaseOf(c.AwaitCloseOp()), suspend.CaseOf(other.RecvOp())
		won, err := suspend.TrySelect(bg, closed)
		require.NoError(t, err)
		require.Nil(t, won)
		var returned atomic.Int32
		await := func() { require.NoError(t, c.AwaitClose(bg)); returned.Add(1) }
		schedtest.Run(t, s, await, await, func() {
			won, err := suspend.Select(bg, closed, otherwise)
			require.NoError(t, err)
			require.Equal(t, suspend.Selectable(closed), won)
			returned.Add(1)
		}, func() {
			for range 10 {
				suspend.Yield()
			}
			require.Zero(t, returned.Load())
			require.NoError(t, c.CloseWith(io.ErrUnexpectedEOF))
		})
		require.EqualValues(t, 3, returned.Load())
		schedtest.Run(t, s, func() {
			require.NoError(t, c.AwaitClose(bg))
			v, err := c.Recv(bg)
			require.NoError(t, err)
			require.Equal(t, 7, v)
			require.Equal(t, io.ErrUnexpectedEOF, c.Send(bg, 8), "a Send has the reason")
			cancelled, cancel := schedtest.WithCancel()
			cancel()
			require.ErrorIs(t, c.AwaitClose(cancelled), context.Canceled)
		})
	})
}

func TestAwaitCloseIsCancelled(t *testing.T) {
	for name, c := range map[string]struct {
		meet func(c *chanx.Chan[int], cancel func())
		want error
	}{
		"while waiting":    {func(_ *chanx.Chan[int], cancel func()) { cancel() }, context.Canceled},
		"before the Close": {func(c *chanx.Chan[int], cancel func()) { cancel(); _ = c.Close() }, context.Canceled},
		"after the Close":  {func(c *chanx.Chan[int], cancel func()) { _ = c.Close(); cancel() }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
				ch := chanx.New[int](0)
				ctx, cancel := schedtest.WithCancel()
				got, other := errors.New("none"), errors.New("none")
				_ = s.Go(func() { got = ch.AwaitClose(ctx) })
				_ = s.Go(func() { other = ch.AwaitClose(bg) })
				suspend.Yield()
				c.meet(ch, cancel)
				schedtest.Settle()
				require.Equal(t, c.want == nil, got == nil)
				require.ErrorIs(t, got, c.want)
				_ = ch.Close()
				schedtest.Settle()
				require.NoError(t, other)
			})
		})
	}
}

// The Close wakes all waiters except those that were cancelled before. None returns nil before the Close.
func TestAwaitCloseUnderCancellation(t *testing.T) {
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		var told, cancelled atomic.Int64
		covered := func() bool { return told.Load() > 0 && cancelled.Load() > 0 }
		for round := 0; schedtest.More(round, 100, covered); round++ {
			c := chanx.New[int](0)
			var closing atomic.Bool
			schedtest.Stress(t, next, 8, func(i int, rng *rand.Rand) {
				if i == 0 {
					for range rng.IntN(5) {
						suspend.Yield()
					}
					closing.Store(true)
					require.NoError(t, c.Close())
					return
				}
				for {
					ctx, cancel := schedtest.MayCancel(rng)
					err := c.AwaitClose(ctx)
					cancel()
					if err == nil {
						require.True(t, closing.Load())
						told.Add(1)
						return
					}
					cancelled.Add(1)
				}
			})
		}
	})
}

// Few tasks wait for a Close, but programs keep many channels, so the wait must not make a channel larger.
func TestSizeOfAChannel(t *testing.T) {
	if size := reflect.TypeFor[chanx.Chan[int]]().Size(); strconv.IntSize == 64 {
		require.LessOrEqual(t, size, uintptr(128))
	}
}
