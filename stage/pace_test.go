package stage_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/suspend"
)

// A batched stage records the sizes of its batches, and when they begin.
type batched struct {
	s     *stage.Stage[int, int]
	mu    sync.Mutex
	sizes []int
	at    []time.Duration
}

func newBatched(o stage.Options) *batched {
	b, start := new(batched), time.Now()
	b.s = stage.NewBatch("batch", func(_ context.Context, in, out []int) error {
		copy(out, in)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.sizes, b.at = append(b.sizes, len(in)), append(b.at, time.Since(start))
		return nil
	}, o)
	return b
}

// A batch waits for further tasks, from the acceptance of its first task on: for the time Gather, or until it is full.
func TestGather(t *testing.T) {
	const ms = time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		b := newBatched(stage.Options{Width: 2, Queue: 100, Batch: 4, Gather: 5 * ms})
		submit := func(n int) {
			for i := range n {
				require.NoError(t, b.s.Submit(bg, i))
			}
		}
		submit(1)
		time.Sleep(2 * ms)
		submit(1)
		time.Sleep(4 * ms) // at 5, two batches have begun
		submit(9)          // at 6, two full batches begin
		synctest.Wait()
		require.Equal(t, 1, b.s.Stats().Waiting)
		time.Sleep(ms)
		submit(3) // at 7, the third
		synctest.Wait()
		require.Zero(t, b.s.Stats().Waiting+b.s.Stats().Busy)
		submit(1)
		time.Sleep(100 * ms)
		synctest.Wait()
		require.Equal(t, []int{2, 4, 4, 4, 1}, b.sizes)
		require.Equal(t, []time.Duration{5 * ms, 6 * ms, 6 * ms, 7 * ms, 12 * ms}, b.at)
		require.NoError(t, b.s.Shutdown(bg))
		holds(t, b.s.Stats())
	})
}

// A task that is tried again fills the batch that gathers, as a new task does.
func TestARetryFillsABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := false
		s := stage.NewBatch("b", func(_ context.Context, in, _ []int) error {
			errs := make(stage.Errors, len(in))
			if !failed {
				failed, errs[0] = true, errOops
			}
			return errs
		}, stage.Options{Batch: 2, Queue: 10, Gather: 2 * time.Second, Retry: func(error, int) (time.Duration, bool) { return 100 * time.Millisecond, true }})
		require.NoError(t, s.Submit(bg, 1))
		require.NoError(t, s.Submit(bg, 2))
		synctest.Wait()
		start := time.Now()
		_, err := s.Do(bg, 3)
		require.NoError(t, err)
		require.Equal(t, 100*time.Millisecond, time.Since(start))
		require.NoError(t, s.Shutdown(bg))
	})
}

// A Shutdown does not wait for further tasks of a batch. A Shutdown that cuts tasks off leaves none of them behind.
func TestGatherAndClose(t *testing.T) {
	for name, cut := range map[string]bool{"drained": false, "cut off": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBatched(stage.Options{Queue: 100, Batch: 4, Gather: time.Hour})
				dead := 0
				b.s.OnFail(func(_ context.Context, _ int, err error) {
					require.ErrorIs(t, err, stage.ErrClosed)
					dead++
				})
				require.NoError(t, b.s.Submit(bg, 1))
				require.NoError(t, b.s.Submit(bg, 2))
				synctest.Wait()
				require.Empty(t, b.sizes)
				require.Zero(t, b.s.Stats().Handlers, "the batch has no slot meanwhile")
				start := time.Now()
				if cut {
					done, cancel := context.WithCancel(bg)
					cancel()
					_ = b.s.Shutdown(done)
				}
				require.NoError(t, b.s.Shutdown(bg))
				require.Zero(t, time.Since(start))
				if holds(t, b.s.Stats()); cut {
					require.Equal(t, 2, dead+len(b.sizes)*2)
				} else {
					require.Equal(t, []int{2}, b.sizes)
				}
			})
		})
	}
}

// A batch gathers from the acceptance of its first task on, even if another batch ran meanwhile.
func TestGatherFromTheFirst(t *testing.T) {
	const ms = time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		start := time.Now()
		s := stage.NewBatch("s", func(_ context.Context, in, out []int) error {
			at = append(at, time.Since(start))
			time.Sleep(3 * ms)
			return nil
		}, stage.Options{Queue: 10, Batch: 4, Gather: 5 * ms})
		require.NoError(t, s.Submit(bg, 1)) // from 5 to 8
		time.Sleep(6 * ms)
		require.NoError(t, s.Submit(bg, 2))
		time.Sleep(ms)
		require.NoError(t, s.Submit(bg, 3))
		time.Sleep(time.Minute)
		require.NoError(t, s.Shutdown(bg))
		require.Equal(t, []time.Duration{5 * ms, 11 * ms}, at)
	})
}

// A worker that waits because of Rate leaves when a Close cuts the stage off.
func TestRateAndCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stage.New("s", double, stage.Options{Rate: 0.001, Queue: 5})
		for i := range 3 {
			require.NoError(t, s.Submit(bg, i))
		}
		synctest.Wait()
		start := time.Now()
		done, cancel := context.WithCancel(bg)
		cancel()
		require.ErrorIs(t, s.Shutdown(done), context.Canceled)
		require.NoError(t, s.Shutdown(bg))
		require.Zero(t, time.Since(start))
		holds(t, s.Stats())
	})
}

// A full batch waits because of Rate. If its worker polled instead, the clock of the bubble would stop.
func TestRateOfFullBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		var at []time.Duration
		start := time.Now()
		s := stage.NewBatch("b", func(context.Context, []int, []int) error {
			at = append(at, time.Since(start))
			return nil
		}, stage.Options{Batch: 2, Queue: 10, Rate: 2, Gather: 5 * ms})
		for i := range 4 {
			require.NoError(t, s.Submit(bg, i))
		}
		require.NoError(t, s.Shutdown(bg))
		require.Equal(t, []time.Duration{0, 500 * ms}, at)
	})
}

// A pool of one worker serves another stage while a batch gathers.
func TestGatherHoldsNoPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := stage.NewPool("p", 1, nil)
		b := newBatched(stage.Options{Pool: p, Batch: 4, Gather: time.Hour})
		s := stage.New("s", double, stage.Options{Pool: p})
		require.NoError(t, b.s.Submit(bg, 1))
		synctest.Wait()
		f, err := s.Begin(bg, 2)
		require.NoError(t, err)
		synctest.Wait()
		v, ok, err := f.Try()
		require.NoError(t, err)
		require.True(t, ok, "the batch keeps the worker")
		require.Equal(t, 4, v)
		require.NoError(t, stage.Shutdown(bg, s, b.s))
		require.Equal(t, []int{1}, b.sizes)
	})
}

// The wait uses the clock of the scheduler.
func TestGatherByTheClockOfTheScheduler(t *testing.T) {
	v := schedtest.NewVirtual()
	b := newBatched(stage.Options{On: v, Batch: 4, Gather: time.Hour})
	require.NoError(t, b.s.Submit(bg, 1))
	schedtest.Eventually(t, "a timer", func() bool { return v.Timers() == 1 })
	require.Equal(t, 1, b.s.Stats().Waiting)
	v.Advance(time.Hour)
	schedtest.Eventually(t, "the batch", func() bool { return b.s.Stats().Completed == 1 })
	require.NoError(t, b.s.Shutdown(bg))
}

// Tasks begin at the given Rate, one at a time or in Bursts, however many wait. A task that is not begun does not count towards
// the Rate.
func TestRate(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		o    stage.Options
		want []time.Duration // the times of the first eight tasks
	}{
		"one":      {stage.Options{Rate: 100}, []time.Duration{0, 10 * ms, 20 * ms, 30 * ms, 40 * ms, 50 * ms, 60 * ms, 70 * ms}},
		"a burst":  {stage.Options{Rate: 100, Burst: 4}, []time.Duration{0, 0, 0, 0, 10 * ms, 20 * ms, 30 * ms, 40 * ms}},
		"of 10 ms": {stage.Options{Rate: 400}, []time.Duration{0, 0, 0, 0, 2500 * time.Microsecond, 5 * ms, 7500 * time.Microsecond, 10 * ms}},
		"slow":     {stage.Options{Rate: 0.5}, []time.Duration{0, 2 * time.Second, 4 * time.Second, 6 * time.Second, 8 * time.Second, 10 * time.Second, 12 * time.Second, 14 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var at []time.Duration
				var guard sync.Mutex // several tasks begin at the same time
				start := time.Now()
				c.o.Width, c.o.Queue = 3, 100
				s := stage.New("s", func(_ context.Context, n int) (int, error) {
					guard.Lock()
					defer guard.Unlock()
					at = append(at, time.Since(start))
					return n, nil
				}, c.o)
				for i := range 8 {
					if i == 4 { // these are cancelled, and not begun
						for range 5 {
							ctx, cancel := context.WithCancel(bg)
							_, err := s.Begin(ctx, i)
							require.NoError(t, err)
							cancel()
						}
					}
					require.NoError(t, s.Submit(bg, i))
				}
				require.NoError(t, s.Shutdown(bg), "at its pace")
				require.Equal(t, c.want, at)
				holds(t, s.Stats())
				require.EqualValues(t, 5, s.Stats().Cancelled)
			})
		})
	}
}

// After a pause, no more than Burst tasks begin at once.
func TestRateAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		start := time.Now()
		s := stage.New("s", func(_ context.Context, n int) (int, error) { at = append(at, time.Since(start)); return n, nil },
			stage.Options{Rate: 10, Burst: 2, Queue: 10})
		require.NoError(t, s.Submit(bg, 0))
		time.Sleep(time.Minute)
		for i := range 4 {
			require.NoError(t, s.Submit(bg, i))
		}
		require.NoError(t, s.Shutdown(bg))
		const m = time.Minute
		require.Equal(t, []time.Duration{0, m, m, m + 100*time.Millisecond, m + 200*time.Millisecond}, at)
	})
}

// The Rate also applies to Dos and to each try. A Do whose task is late is shed, and does not count towards the Rate.
func TestRateOfDosAndTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		s := stage.New("s", func(_ context.Context, n int) (int, error) {
			if tries++; tries%2 == 1 {
				return 0, errOops
			}
			return n, nil
		}, stage.Options{Rate: 10, Retry: func(_ error, try int) (time.Duration, bool) { return 0, try < 3 }})
		start := time.Now()
		for i := range 3 {
			_, err := s.Do(bg, i)
			require.NoError(t, err)
		}
		require.Equal(t, 500*time.Millisecond, time.Since(start))
		require.NoError(t, s.Shutdown(bg))

		shed := stage.New("s", double, stage.Options{Rate: 100, Queue: 100, Delay: 20 * time.Millisecond})
		start = time.Now()
		for i := range 101 {
			require.NoError(t, shed.Submit(bg, i))
		}
		require.NoError(t, shed.Shutdown(bg))
		st := shed.Stats()
		holds(t, st)
		require.Positive(t, st.Late)
		require.InDelta(t, time.Since(start).Seconds()*100, st.Completed, 2)
	})
}

// Wrong options for the pace panic.
func TestPaceMisuse(t *testing.T) {
	for _, o := range []stage.Options{{Gather: -1}, {Rate: -1}, {Burst: -1}} {
		schedtest.Panics(t, "stage: negative Gather, Rate or Burst", func() { stage.New("s", double, o) })
	}
}

// On all schedulers, with failing tries and a shared pool, each task is done once.
func TestPaceOnAllSchedulers(t *testing.T) {
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		defer schedtest.Within(t, time.Minute)()
		p := stage.NewPool("p", 2, next())
		seen := make([]int, 200)
		a := stage.NewBatch("a", func(_ context.Context, in, out []int) error {
			copy(out, in)
			return nil
		}, stage.Options{Pool: p, Width: 2, Queue: 10, Batch: 3, Gather: time.Millisecond})
		b := stage.New("b", func(_ context.Context, n int) (int, error) {
			if seen[n]++; seen[n]%2 == 1 && n%3 == 0 {
				return 0, errOops
			}
			return n, nil
		}, stage.Options{Pool: p, Width: 1, Rate: 5000, Retry: func(error, int) (time.Duration, bool) { return 0, true }})
		pipe := stage.Pipe(a, b)
		for i := range seen {
			require.NoError(t, pipe.Submit(bg, i))
		}
		require.NoError(t, stage.Shutdown(bg, a, b))
		holds(t, a.Stats())
		holds(t, b.Stats())
		require.EqualValues(t, len(seen), b.Stats().Completed)
		require.False(t, slices.Contains(seen, 0))
		require.NoError(t, errors.Join(p.Shutdown(bg)))
	})
}
