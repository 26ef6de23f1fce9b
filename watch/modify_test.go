package watch_test

import (
	"context"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/watch"
)

// No increment is lost although the functions let other tasks run, and each waiter is woken for each version that it waits for.
func TestModifyLosesNoUpdate(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		const tasks, times = 8, 100
		var w watch.Value[int]
		fs := []func(){func() {
			for now := w.Load(); now.Value < tasks*times; {
				next, err := w.Changed(bg, now.Version)
				require.NoError(t, err)
				require.EqualValues(t, next.Version, next.Value)
				now = next
			}
		}}
		for i := range tasks {
			fs = append(fs, func() {
				for k := range times {
					now, err := w.Modify(func(n int) int {
						if (i+k)%5 == 0 {
							suspend.Yield() // lets another Modify come first
						}
						return n + 1
					})
					require.NoError(t, err)
					require.EqualValues(t, now.Version, now.Value)
				}
			})
		}
		schedtest.Run(t, s, fs...)
		require.Equal(t, watch.State[int]{Value: tasks * times, Version: tasks * times}, w.Load())
	})
}

// A function that panics or exits changes nothing, and wakes no waiter.
func TestModifyThatFails(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		w := watch.New(3)
		woken := false
		_ = s.Go(func() { _, _ = w.Changed(bg, 0); woken = true })
		suspend.Yield()
		schedtest.Panics(t, "ouch", func() { _, _ = w.Modify(func(int) int { panic("ouch") }) })
		_ = s.Go(func() { _, _ = w.Modify(func(int) int { runtime.Goexit(); return 0 }) })
		schedtest.Settle()
		require.False(t, woken)
		require.Equal(t, watch.State[int]{Value: 3}, w.Load())
		now, err := w.Modify(func(n int) int { return n + 1 })
		require.NoError(t, err)
		require.Equal(t, watch.State[int]{Value: 4, Version: 1}, now)
		schedtest.Settle()
		require.True(t, woken)
		require.NoError(t, w.Close())
		now, err = w.Modify(func(n int) int { return n + 1 })
		require.Equal(t, watch.ErrClosed, err)
		require.Zero(t, now)
		require.Equal(t, 4, w.Load().Value)
		schedtest.Panics(t, "watch: Modify with a nil function", func() { _, _ = w.Modify(nil) })
	})
}

// A function that changed its own Value would be called for ever.
func TestModifyInsideModify(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		const text = "watch: the function of a Modify changes the Value itself"
		schedtest.Run(t, s, func() {
			w, other := watch.New(0), watch.New(0)
			schedtest.Panics(t, text, func() {
				_, _ = w.Modify(func(n int) int { _, _ = w.Modify(func(n int) int { return n + 1 }); return n + 10 })
			})
			schedtest.Panics(t, text, func() { _, _ = w.Modify(func(n int) int { _ = w.Store(5); return n + 10 }) })
			require.Equal(t, watch.State[int]{Value: 5, Version: 2}, w.Load())
			now, err := w.Modify(func(n int) int { // another Value may be modified
				_, _ = other.Modify(func(n int) int { return n + 1 })
				return n + w.Load().Value
			})
			require.NoError(t, err)
			require.Equal(t, watch.State[int]{Value: 10, Version: 3}, now)
			require.Equal(t, 1, other.Load().Value)
		})
	})
}

func TestUntilOp(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		even := func(n int) bool { return n%2 == 0 }
		w, quits := watch.New(3), chanx.New[int](0)
		until, quit := suspend.CaseOf(w.UntilOp(even)), suspend.CaseOf(quits.RecvOp())
		schedtest.Run(t, s, func() {
			won, err := suspend.Select(bg, quit, until)
			require.NoError(t, err)
			require.Equal(t, suspend.Selectable(until), won)
			require.Equal(t, 8, until.Value())
			require.Equal(t, 8, w.Load().Value)
		}, func() {
			for _, v := range []int{5, 7, 8} {
				suspend.Yield()
				require.NoError(t, w.Store(v))
			}
		})
		schedtest.Run(t, s, func() { // an Op may be performed again, here without a wait
			v, err := suspend.Do(bg, w.UntilOp(even))
			require.NoError(t, err)
			require.Equal(t, 8, v)
			won, err := suspend.TrySelect(bg, suspend.CaseOf(w.UntilOp(func(n int) bool { return n > 100 })))
			require.NoError(t, err)
			require.Nil(t, won)
		})
		schedtest.Run(t, s, func() { // a case that has lost does not wait for later values
			calls := 0
			until.Set(w.UntilOp(func(int) bool { calls++; return false }))
			won, err := suspend.Select(bg, until, quit)
			require.NoError(t, err)
			require.Equal(t, suspend.Selectable(quit), won)
			before := calls
			require.Positive(t, before)
			require.NoError(t, w.Store(9))
			suspend.Yield()
			require.Equal(t, before, calls)
		}, func() { require.NoError(t, quits.Send(bg, 1)) })
		schedtest.Run(t, s, func() {
			ctx, cancel := context.WithCancel(bg)
			require.NoError(t, s.Go(cancel))
			_, err := suspend.Do(ctx, w.UntilOp(even))
			require.ErrorIs(t, err, context.Canceled)
		})
		schedtest.Run(t, s, func() {
			_, err := suspend.Do(bg, w.UntilOp(even))
			require.Equal(t, watch.ErrClosed, err)
			v, err := suspend.Do(bg, w.UntilOp(func(n int) bool { return n == 9 }))
			require.NoError(t, err)
			require.Equal(t, 9, v, "the last value stays")
		}, func() { suspend.Yield(); require.NoError(t, w.Close()) })
		schedtest.Panics(t, "watch: UntilOp with a nil function", func() { w.UntilOp(nil) })
	})
}

// A condition that panics leaves no waiter behind, in a Select or in a Then.
func TestAConditionThatPanics(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		w := watch.New(0)
		op := w.UntilOp(func(n int) bool {
			if n == 1 {
				panic("ouch")
			}
			return n == 2
		})
		caught := any(nil)
		_ = s.Go(func() {
			defer func() { caught = recover() }()
			_, _ = suspend.Do(bg, op)
		})
		suspend.Yield()
		require.NoError(t, w.Store(1))
		schedtest.Settle()
		require.Equal(t, "ouch", caught)
		schedtest.Panics(t, "ouch", func() { suspend.Then(bg, op, s, func(int, error) { t.Error("called") }) })
		require.NoError(t, w.Store(0))
		got := 0
		suspend.Then(bg, op, s, func(v int, _ error) { got = v })
		schedtest.Settle()
		require.Zero(t, got)
		require.NoError(t, w.Store(2))
		schedtest.Settle()
		require.Equal(t, 2, got)
	})
}

// Each of many readers gets a value for which its condition holds, although others are cancelled, and all see the last
// value.
func TestUntilOpUnderCancellation(t *testing.T) {
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		var held, failed atomic.Int64
		covered := func() bool { return held.Load() > 0 && failed.Load() > 0 }
		for round := 0; schedtest.More(round, 50, covered); round++ {
			const last = 10
			var w watch.Value[int]
			schedtest.Stress(t, next, 8, func(i int, rng *rand.Rand) {
				if i == 7 {
					for range last {
						_, _ = w.Modify(func(n int) int { return n + 1 })
						suspend.Yield()
					}
					return
				}
				for at := 0; at < last; {
					ctx, cancel := schedtest.MayCancel(rng)
					v, err := suspend.Do(ctx, w.UntilOp(func(n int) bool { return n > at }))
					cancel()
					switch {
					case err != nil:
						failed.Add(1)
					case v <= at:
						t.Errorf("%d after %d", v, at)
						return
					default:
						at = v
						held.Add(1)
					}
				}
			})
		}
	})
}

// A condition may take longer than the time between two changes. UntilOp returns the value for which the condition held, like
// Until.
func TestUntilOpThatIsSlow(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		schedtest.Run(t, s, func() {
			w := watch.New(4)
			calls := 0
			slow := func(n int) bool {
				if calls++; calls > 3 {
					t.Fatal("UntilOp looks again and again")
				}
				stored := make(chan error)
				go func() { stored <- w.Store(n + 1) }()
				require.NoError(t, <-stored)
				return true
			}
			v, err := suspend.Do(bg, w.UntilOp(slow))
			require.NoError(t, err)
			require.Equal(t, 4, v)
			v, err = w.Until(bg, slow)
			require.NoError(t, err)
			require.Equal(t, 5, v)
			won, err := suspend.TrySelect(bg, suspend.CaseOf(w.UntilOp(slow)))
			require.NoError(t, err)
			require.NotNil(t, won)
			require.Equal(t, 3, calls)
		})
	})
}

// The function of a Modify stores a value itself, and another goroutine then stores another one. The function must be called
// again. Changes from before the Modify do not count as those of its function.
func TestModifyWhoseFunctionStoresFirst(t *testing.T) {
	elsewhere := func(f func()) {
		done := make(chan int)
		go func() { f(); close(done) }()
		<-done
	}
	w := watch.New(0)
	calls := 0
	now, err := w.Modify(func(n int) int {
		if calls++; calls == 1 {
			_ = w.Store(5)
			elsewhere(func() { _ = w.Store(7) })
		}
		return n + 10
	})
	require.NoError(t, err)
	require.Equal(t, watch.State[int]{Value: 17, Version: 3}, now)
	require.Equal(t, 2, calls)
	_ = w.Store(20)
	elsewhere(func() { _ = w.Store(30) }) // while no Modify runs
	calls = 0
	now, err = w.Modify(func(n int) int {
		if calls++; calls == 1 {
			elsewhere(func() { _ = w.Store(40) })
		}
		return n + 1
	})
	require.NoError(t, err)
	require.Equal(t, 41, now.Value)
	require.Equal(t, 2, calls)
}

// Programs keep many Values, so a Value must be small.
func TestSizeOfAValue(t *testing.T) {
	if size := reflect.TypeFor[watch.Value[int]]().Size(); strconv.IntSize == 64 {
		require.LessOrEqual(t, size, uintptr(64))
	}
}
