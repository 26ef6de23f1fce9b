package watch_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/watch"
)

func TestMain(m *testing.M) { schedtest.Main(m) }

var bg = context.Background()

// Each reader sees increasing versions, and the last one, however slow the reader is.
func TestEveryReaderSeesTheLast(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		const last = 200
		var w watch.Value[int]
		var fs []func()
		for i := range 8 {
			fs = append(fs, func() {
				for now := w.Load(); now.Value != last; {
					next, err := w.Changed(bg, now.Version)
					if err != nil || next.Version <= now.Version || next.Version != uint64(next.Value) {
						t.Errorf("%v after %v: %v", next, now, err)
						return
					}
					for now = next; i%2 == 1 && now.Value%7 == 0; now = w.Load() {
						suspend.Yield()
					}
				}
			})
		}
		fs = append(fs, func() {
			for v := range last {
				require.NoError(t, w.Store(v+1))
				suspend.Yield()
			}
		})
		schedtest.Run(t, s, fs...)
	})
}

func TestCancelAtEachPoint(t *testing.T) {
	for name, c := range map[string]struct {
		meet func(w *watch.Value[int], cancel func())
		want error
	}{
		"while waiting":            {func(w *watch.Value[int], cancel func()) { cancel(); schedtest.Yield(2); _ = w.Store(1) }, context.Canceled},
		"before the Store":         {func(w *watch.Value[int], cancel func()) { cancel(); _ = w.Store(1) }, context.Canceled},
		"after the Store":          {func(w *watch.Value[int], cancel func()) { _ = w.Store(1); cancel() }, nil},
		"before the Close":         {func(w *watch.Value[int], cancel func()) { cancel(); _ = w.Close() }, context.Canceled},
		"after the Close":          {func(w *watch.Value[int], cancel func()) { _ = w.Close(); cancel() }, watch.ErrClosed},
		"after the Close, a Store": {func(w *watch.Value[int], _ func()) { _ = w.Close(); _ = w.Store(1) }, suspend.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
				w := watch.New(0)
				ctx, cancel := schedtest.WithCancel()
				got, other := errors.New("none"), false
				_ = s.Go(func() { _, got = w.Changed(ctx, 0) })
				_ = s.Go(func() { _, _ = w.Changed(bg, 0); other = true })
				suspend.Yield()
				c.meet(w, cancel)
				schedtest.Yield(2)
				require.True(t, other, "the other waiter is left behind")
				require.Equal(t, c.want == nil, got == nil)
				require.ErrorIs(t, got, c.want)
			})
		})
	}
}

func TestUntil(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		w, done := watch.New(3), 0
		even := func(n int) bool { return n%2 == 0 }
		_ = s.Go(func() {
			v, err := w.Until(bg, even)
			require.NoError(t, err)
			done = v
		})
		for _, v := range []int{5, 7, 8} {
			suspend.Yield()
			require.Zero(t, done)
			require.NoError(t, w.Store(v))
		}
		schedtest.Settle()
		require.Equal(t, 8, done)
		require.NoError(t, w.Close())
		require.Equal(t, watch.ErrClosed, w.Close())
		v, err := w.Until(bg, even)
		require.Equal(t, 8, v, "the last value stays")
		require.NoError(t, err)
		_, err = w.Until(bg, func(int) bool { return false })
		require.Equal(t, watch.ErrClosed, err)
		cancelled, cancel := schedtest.WithCancel()
		cancel()
		_, err = w.Until(cancelled, even)
		require.ErrorIs(t, err, context.Canceled)
	})
}

// A reader that is not cancelled sees the last value, although others give up.
func TestStressWithCancellation(t *testing.T) {
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		var seen, failed atomic.Int64
		covered := func() bool { return seen.Load() > 0 && failed.Load() > 0 }
		for round := 0; schedtest.More(round, 100, covered); round++ {
			const last = 10
			var w watch.Value[int]
			schedtest.Stress(t, next, 8, func(i int, rng *rand.Rand) {
				if i == 7 {
					for v := range last {
						_ = w.Store(v + 1)
						suspend.Yield()
					}
					return
				}
				for now := (watch.State[int]{}); now.Value != last; {
					ctx, cancel := schedtest.MayCancel(rng)
					next, err := w.Changed(ctx, now.Version)
					cancel()
					switch {
					case err != nil:
						failed.Add(1)
					case next.Version <= now.Version:
						t.Errorf("%v after %v", next, now)
						return
					default:
						now = next
						seen.Add(1)
					}
				}
			})
		}
	})
}

func TestAllocs(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		w := watch.New(0)
		_ = w.Store(1)
		for name, c := range map[string]struct {
			most float64
			f    func()
		}{
			"Load":                       {0, func() { w.Load() }},
			"Store":                      {1, func() { _ = w.Store(1) }},
			"Changed that need not wait": {0, func() { _, _ = w.Changed(bg, 0) }},
			"Changed that waits": {3, func() { // the Store, and the task that calls it
				_ = s.Go(func() { _ = w.Store(1) })
				_, _ = w.Changed(bg, w.Load().Version)
			}},
		} {
			if got := testing.AllocsPerRun(100, c.f); got > c.most {
				t.Errorf("%s: %v allocations", name, got)
			}
		}
	})
}
