package lazy_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/lazy"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

var errNoAnswer = errors.New("no answer")

// All waiters of a failed run get its error, the next Force runs the function again, and a value is kept.
func TestRetry(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		const tasks = 5
		runs, gate := 0, promise.New[error]()
		l := lazy.New(func(ctx context.Context) (int, error) {
			runs++
			err, _ := gate.Await(ctx)
			return runs, err
		}, lazy.Retry)
		var ran, shared atomic.Int32
		value := make(chan int, 1)
		schedtest.Run(t, s, func() {
			require.NoError(t, s.Go(func() { v, _ := suspend.Do(bg, l.ValueOp()); value <- v }))
		})
		force := func() {
			switch v, err := l.Force(bg); {
			case err != errNoAnswer:
				t.Errorf("got %v", err)
			case v == 1:
				ran.Add(1)
			case v == 0:
				shared.Add(1)
			}
		}
		fs := []func(){force, force, force, force, force, func() {
			schedtest.Eventually(t, "all wait", func() bool { return l.Waiting() == tasks-1 })
			gate.Fill(errNoAnswer)
		}}
		schedtest.Run(t, s, fs...)
		require.EqualValues(t, 1, ran.Load())
		require.EqualValues(t, tasks-1, shared.Load())
		require.Equal(t, 1, runs)
		_, ok, err := l.Value()
		require.False(t, ok)
		require.NoError(t, err)

		gate = promise.New[error]()
		gate.Fill(errNoAnswer)
		schedtest.Run(t, s, func() {
			_, err := l.Force(bg)
			require.Equal(t, errNoAnswer, err)
			require.Equal(t, 2, runs)
			gate = promise.New[error]()
			gate.Fill(nil)
			for range 2 {
				v, err := l.Force(bg)
				require.NoError(t, err)
				require.Equal(t, 3, v)
			}
		})
		require.Equal(t, 3, <-value, "a waiter of ValueOp passes over the errors")
	})
}

// A cancelled run does not count for the waiters: the first of them runs the function, as with the mode Restart.
func TestRetryAfterACancellation(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		runs := 0
		l := lazy.New(func(ctx context.Context) (int, error) {
			if runs++; runs == 1 {
				_, err := promise.New[int]().Await(ctx)
				return 0, err
			}
			return runs, nil
		}, lazy.Retry)
		ctx, cancel := schedtest.WithCancel()
		var first, second error
		got := 0
		_ = s.Go(func() { _, first = l.Force(ctx) })
		_ = s.Go(func() { got, second = l.Force(bg) })
		suspend.Yield()
		cancel()
		schedtest.Settle()
		require.ErrorIs(t, first, context.Canceled)
		require.NoError(t, second)
		require.Equal(t, 2, got)
	})
}

// A run that exits is an error, which is not kept. A panic is kept.
func TestRetryAfterAnExitAndAPanic(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		var f func() int
		l := lazy.New(func(context.Context) (int, error) { return f(), nil }, lazy.Retry)
		f = func() int { suspend.Yield(); runtime.Goexit(); return 0 }
		var err error
		_ = s.Go(func() { _, _ = l.Force(bg) })
		_ = s.Go(func() { _, err = l.Force(bg) })
		schedtest.Settle()
		require.ErrorIs(t, err, suspend.ErrAbandoned)
		f = func() int { panic("ouch") }
		for range 2 {
			schedtest.Panics(t, "ouch", func() { _, _ = l.Force(bg) })
		}
		schedtest.Panics(t, "ouch", func() { _, _, _ = l.Value() })
	})
}

// Under cancellations and errors, one function runs at a time, and all tasks get the value in the end.
func TestStressOnRetry(t *testing.T) {
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		var failed, cancelled, ready atomic.Int64
		covered := func() bool { return failed.Load() > 0 && cancelled.Load() > 0 && ready.Load() > 0 }
		for round := 0; schedtest.More(round, 100, covered); round++ {
			var running, runs, kept atomic.Int32
			l := lazy.New(func(ctx context.Context) (int, error) {
				if running.Add(1) != 1 {
					t.Error("two functions run")
				}
				defer running.Add(-1)
				n := runs.Add(1)
				suspend.Yield()
				switch err := suspend.Err(ctx); {
				case err != nil:
					return 0, err
				case n%3 != 0:
					return 0, errNoAnswer
				}
				kept.Add(1)
				return int(n), nil
			}, lazy.Retry)
			schedtest.Stress(t, next, 8, func(_ int, rng *rand.Rand) {
				for {
					ctx, cancel := schedtest.MayCancel(rng)
					v, err := l.Force(ctx)
					cancel()
					switch {
					case err == nil && v%3 == 0 && v > 0:
						ready.Add(1)
						return
					case err == errNoAnswer:
						failed.Add(1)
					case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
						cancelled.Add(1)
					default:
						t.Errorf("%v, %v", v, err)
						return
					}
				}
			})
			require.EqualValues(t, 1, kept.Load())
		}
	})
}

// A Force that has waited for a failed run does not wait for the next run, even if its task continues only later. So there is no
// cycle if the next run forces a value that this task computes.
func TestRetryServesWhoHasWaited(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		var running, hold promise.Promise[int]
		fails := promise.New[int]()
		var a, b *lazy.Lazy[int]
		runs := 0
		a = lazy.New(func(ctx context.Context) (int, error) {
			if runs++; runs == 1 {
				running.Fill(1)
				_, err := fails.Await(ctx)
				require.NoError(t, err)
				return 0, errNoAnswer
			}
			hold.Fill(1)
			return b.Force(ctx)
		}, lazy.Retry)
		b = lazy.New(func(ctx context.Context) (int, error) {
			_, err := a.Force(ctx)
			require.Equal(t, errNoAnswer, err)
			_, err = hold.Await(ctx)
			return 7, err
		}, lazy.Retry)
		schedtest.Run(t, s, func() {
			_, err := a.Force(bg)
			require.Equal(t, errNoAnswer, err)
			v, err := a.Force(bg) // on most schedulers before the task of b continues
			require.NoError(t, err)
			require.Equal(t, 7, v)
		}, func() {
			_, _ = running.Await(bg)
			v, err := b.Force(bg)
			require.NoError(t, err)
			require.Equal(t, 7, v)
		}, func() {
			schedtest.Eventually(t, "b waits for a", func() bool { return a.Waiting() == 1 })
			fails.Fill(1)
		})
		require.Equal(t, 2, runs)
	})
}

// A waiting Force gets only the error. The Force that runs the function also gets the value beside the error.
func TestRetryValueBesideAnError(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		l := lazy.New(func(context.Context) (int, error) { suspend.Yield(); return 5, errNoAnswer }, lazy.Retry)
		var got [2]int
		for i := range got {
			_ = s.Go(func() {
				v, err := l.Force(bg)
				require.Equal(t, errNoAnswer, err)
				got[i] = v
			})
		}
		schedtest.Settle()
		require.Equal(t, [2]int{5, 0}, got)
	})
}
