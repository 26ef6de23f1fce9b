package eventloop_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/rate"
	"github.com/braidgo/braid/suspend"
)

// atTheEnd calls begin while the Loop is open, in a task of a closing Loop, and after the Loop has ended. Each time it then calls
// check.
func atTheEnd(t *testing.T, begin func(l *eventloop.Loop), check func(t *testing.T)) {
	for _, when := range []string{"open", "closing", "ended"} {
		t.Run(when, func(t *testing.T) {
			defer schedtest.Within(t, schedtest.Deadline)()
			l, err := eventloop.New(eventloop.Options{})
			require.NoError(t, err)
			gate, closed := promise.New[int](), make(chan error)
			require.NoError(t, l.Go(func() {
				_, _ = gate.Await(context.Background())
				if when != "ended" {
					begin(l)
				}
			}))
			closes := func() { go func() { closed <- l.Close() }() }
			if when == "closing" {
				closes()
				for l.Go(func() {}) == nil {
					time.Sleep(time.Millisecond)
				}
				_ = gate.Fill(1)
			} else {
				_ = gate.Fill(1)
				closes()
			}
			require.NoError(t, <-closed)
			if when == "ended" {
				begin(l)
			}
			check(t)
		})
	}
}

// A timer still fires after its Loop has ended. Otherwise a continuation would never be called, a Limiter would block all its
// waiters for ever, or a context would never end.
func TestTimersOutliveTheLoop(t *testing.T) {
	const d = 30 * time.Millisecond
	called := make(chan error, 9)
	t.Run("AfterFunc", func(t *testing.T) {
		atTheEnd(t, func(l *eventloop.Loop) { l.AfterFunc(d, func() { called <- nil }) }, func(t *testing.T) { require.NoError(t, <-called) })
	})
	t.Run("Then", func(t *testing.T) {
		atTheEnd(t, func(l *eventloop.Loop) {
			suspend.Then(context.Background(), suspend.After(d), l, func(_ time.Time, err error) { called <- err })
		}, func(t *testing.T) { require.NoError(t, <-called) })
	})
	t.Run("WithTimeout", func(t *testing.T) {
		var ctx context.Context
		atTheEnd(t, func(*eventloop.Loop) { ctx, _ = cancel.WithTimeout(context.Background(), d) }, func(t *testing.T) {
			<-ctx.Done()
			require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
		})
	})
	t.Run("Limiter", func(t *testing.T) {
		var l *rate.Limiter
		atTheEnd(t, func(on *eventloop.Loop) {
			l = rate.NewLimiter(rate.Every(d), 1)
			l.Allow(1)
			suspend.Then(context.Background(), l.WaitOp(1), on, func(time.Time, error) {})
		}, func(t *testing.T) { require.NoError(t, l.Wait(context.Background())) })
	})
}

// The stop function of a timer works after the Loop has ended.
func TestStopAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := eventloop.New(eventloop.Options{})
		require.NoError(t, err)
		stop := l.AfterFunc(time.Hour, func() { t.Error("called") })
		require.NoError(t, l.Close())
		require.True(t, stop())
		require.False(t, stop())
		stop = l.AfterFunc(time.Hour, func() { t.Error("called") })
		require.True(t, stop())
		time.Sleep(2 * time.Hour)
	})
}
