package integration_test

import (
	"context"
	"errors"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/broadcast"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/lazy"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/respool"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/watch"
)

// The second call that ends an object has the documented result, and changes nothing.
func TestSecondCalls(t *testing.T) {
	v := watch.New(1)
	require.NoError(t, v.Close())
	require.Equal(t, watch.ErrClosed, v.Close())
	require.Equal(t, watch.ErrClosed, v.Store(2))
	require.Equal(t, watch.State[int]{Value: 1}, v.Load())

	c := chanx.New[int](1)
	require.NoError(t, c.Send(bg, 1))
	require.NoError(t, c.CloseWith(errSecond))
	require.Equal(t, chanx.ErrClosed, c.Close())
	got, err := c.Recv(bg)
	require.NoError(t, err)
	require.Equal(t, 1, got)
	_, err = c.Recv(bg)
	require.Equal(t, errSecond, err)

	l := latch.New(1)
	done := l.Done()
	l.CountDown()
	schedtest.Panics(t, "latch: CountDown below zero", l.CountDown)
	schedtest.Panics(t, "latch: CountDown below zero", new(latch.Latch).CountDown)
	require.True(t, l.TryWait())
	require.NoError(t, l.Wait(bg))
	<-done

	p := promise.New[int]()
	require.True(t, p.Fill(1))
	require.False(t, p.Fill(2))
	require.False(t, p.Fail(errSecond))
	require.False(t, p.Resolve(3, errSecond))
	got, err = p.Await(bg)
	require.NoError(t, err)
	require.Equal(t, 1, got)

	s := semaphore.New(1)
	require.NoError(t, s.Close())
	require.Equal(t, semaphore.ErrClosed, s.Close())

	top := broadcast.New[int]()
	sub := top.Subscribe(1, broadcast.Wait)
	sub.Close()
	sub.Close()
	require.NoError(t, top.Publish(bg, 1))
	require.NoError(t, top.Close())
	require.Equal(t, broadcast.ErrClosed, top.Close())

	pool := respool.New(respool.Options[int]{Max: 1, Open: func(context.Context) (int, error) { return 1, nil }})
	lease, err := pool.Acquire(bg)
	require.NoError(t, err)
	lease.Release()
	schedtest.Panics(t, "respool: Lease released twice", lease.Release)
	require.Equal(t, []int{1, 0}, []int{pool.Stats().Idle, pool.Stats().Leased})
	require.NoError(t, pool.Close())
	require.Equal(t, respool.ErrClosed, pool.Close())
}

var errSecond = errors.New("second")

// If a function that a primitive calls panics, the caller gets the panic, with its value and its stack, and the primitive can be
// used again.
func TestPanicsOfFunctions(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
		schedtest.Run(t, on, func() {
			v := watch.New(1)
			panicsHere(t, func() { _, _ = v.Modify(func(int) int { goesWrong(); return 2 }) })
			panicsHere(t, func() {
				_, _ = suspend.Do(bg, v.UntilOp(func(int) bool { goesWrong(); return true }))
			})
			panicsHere(t, func() { _, _ = v.Until(bg, func(int) bool { goesWrong(); return true }) })
			require.NoError(t, v.Store(2))
			now, err := v.Changed(bg, 0)
			require.NoError(t, err)
			require.Equal(t, 2, now.Value)

			m := mvar.NewFull(1)
			panicsHere(t, func() { _ = m.Modify(bg, func(int) (int, error) { goesWrong(); return 2, nil }) })
			got, err := m.Take(bg)
			require.NoError(t, err)
			require.Equal(t, 1, got, "the old value")

			for _, mode := range []lazy.Mode{lazy.Restart, lazy.Record, lazy.Protect, lazy.Retry} {
				ctx, end := context.WithCancel(bg)
				runs := 0
				l := lazy.New(func(context.Context) (int, error) { runs++; end(); goesWrong(); return 1, nil }, mode)
				panicsHere(t, func() { _, _ = l.Force(ctx) })
				schedtest.Panics(t, "wrong", func() { _, _ = l.Force(bg) })
				schedtest.Panics(t, "wrong", func() { _, _, _ = l.Value() })
				schedtest.Panics(t, "wrong", func() { _, _ = suspend.Do(bg, l.ValueOp()) })
				require.Equal(t, 1, runs)
			}

			c := chanx.New[int](2)
			_ = c.Send(bg, 1)
			_ = c.Send(bg, 2)
			panicsHere(t, func() {
				for range c.All(bg) {
					goesWrong()
				}
			})
			got, err = c.Recv(bg)
			require.NoError(t, err)
			require.Equal(t, 2, got)
			panicsHere(t, func() {
				_, _ = suspend.Select(bg, suspend.CaseOf(suspend.Map(c.RecvOp(), func(int, error) (int, error) { goesWrong(); return 1, nil })),
					suspend.CaseOf(suspend.Map(suspend.After(0*time.Second), func(time.Time, error) (int, error) { goesWrong(); return 1, nil })))
			})
			ok, err := c.TrySend(3)
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, 1, c.Len(), "no receiver is left in the queue")
		})
	})
}

func goesWrong() { panic("wrong") }

// panicsHere requires that f panics, with the frame of goesWrong on the stack.
func panicsHere(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		require.Equal(t, "wrong", recover())
		require.True(t, strings.Contains(string(debug.Stack()), "goesWrong"), "the stack")
	}()
	f()
}
