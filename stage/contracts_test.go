package stage_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/suspend"
)

// A Close that cuts a stage off also ends the waits of its workers for room in the next stage.
func TestACutEndsTheWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := hold(stage.Options{Queue: stage.NoQueue})
		var dead []error
		first := stage.New("first", func(_ context.Context, n int) (int, error) { return n, nil }, stage.Options{}).
			OnFail(func(_ context.Context, _ int, err error) { dead = append(dead, err) })
		p := stage.Pipe(first, next.s)
		for i := range 2 {
			require.NoError(t, p.Submit(bg, i)) // the second one waits for room
			synctest.Wait()
		}
		require.Equal(t, 1, first.Stats().Busy)
		ctx, cancel := context.WithCancel(bg)
		cancel()
		require.ErrorIs(t, first.Shutdown(ctx), context.Canceled)
		synctest.Wait()
		require.Zero(t, first.Stats().Busy)
		require.Len(t, dead, 1)
		require.ErrorIs(t, dead[0], stage.ErrClosed)
		next.close(t)
	})
}

// A timed scheduler counts the timers that were neither stopped nor called.
type timed struct {
	suspend.Spawner
	timers int
}

func (s *timed) Now() time.Time { return time.Now() }

func (s *timed) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	s.timers++
	over := func() bool { s.timers--; return true }
	timer := time.AfterFunc(d, func() { over(); f() })
	return func() bool { return timer.Stop() && over() }
}

// If a task is cut off between two tries, no timer remains.
func TestACutStopsTheTimersOfRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := &timed{Spawner: suspend.Goroutines}
		s := stage.New("s", func(context.Context, int) (int, error) { return 0, errOops },
			stage.Options{On: on, Retry: func(error, int) (time.Duration, bool) { return time.Hour, true }})
		require.NoError(t, s.Submit(bg, 1))
		synctest.Wait()
		require.Equal(t, 1, s.Stats().Delayed)
		require.Equal(t, 1, on.timers)
		ctx, cancel := context.WithCancel(bg)
		cancel()
		require.ErrorIs(t, s.Shutdown(ctx), context.Canceled)
		require.Zero(t, on.timers)
	})
}

// When a Limiter widens the stage, callers that wait for room are admitted at once, and not only when another task ends.
func TestALimiterThatWidensLetsCallersIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		s := stage.New("s", func(_ context.Context, n int) (int, error) {
			if n > 10 { // the window begins with the first end, and has ten tasks
				<-let
			}
			time.Sleep(time.Millisecond)
			return n, nil
		}, stage.Options{Queue: stage.NoQueue, Limit: limiter(func(stage.Sample) int { return 8 })})
		for i := range 30 {
			go func() { _ = s.Submit(bg, i) }()
			synctest.Wait() // waits, so that they come in this order
		}
		time.Sleep(time.Minute)
		require.Equal(t, 8, s.Stats().Width)
		require.Equal(t, 8, s.Stats().Busy)
		close(let)
		time.Sleep(time.Minute)
		require.NoError(t, s.Shutdown(bg))
	})
}

// The figures of a Sample are the changes since the last one. Their sums are the figures of the stage.
func TestSamplesAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var done, failed, dropped, refused int
		s := stage.New("s", func(_ context.Context, n int) (int, error) {
			time.Sleep(time.Millisecond)
			switch n % 4 {
			case 1:
				return 0, errOops
			case 2:
				return 0, stage.ErrFull
			}
			return n, nil
		}, stage.Options{Queue: 100, Delay: 20 * time.Millisecond, Reject: true, Limit: limiter(func(s stage.Sample) int {
			done, failed, dropped, refused = done+s.Done, failed+s.Failed, dropped+s.Dropped, refused+s.Refused
			return s.Width
		})})
		for i := range 1000 {
			_ = s.Submit(bg, i)
			time.Sleep(500 * time.Microsecond)
		}
		require.NoError(t, s.Shutdown(bg))
		st := s.Stats()
		holds(t, st)
		require.Positive(t, st.Late)
		require.InDelta(t, float64(st.Completed+st.Failed), done, 20, "except for the window that is not over")
		require.InDelta(t, float64(st.Failed), failed, 20)
		require.InDelta(t, float64(st.Dropped), dropped, 20)
		require.InDelta(t, float64(st.Rejected+st.Late), refused, 60)
	})
}

// No duration in a bucket exceeds the upper bound of the bucket.
func TestBucketsHoldTheirDurations(t *testing.T) {
	for d := int64(1); d < int64(100*time.Hour); d = d*9/8 + 1 {
		h := stage.HistogramOf([]int64{d})
		for upTo, n := range h.Buckets {
			require.EqualValues(t, 1, n)
			require.GreaterOrEqual(t, int64(upTo), d)
			if d < int64(30*time.Minute) {
				require.LessOrEqual(t, float64(upTo), 1.3*float64(d)+2)
			}
		}
	}
}

// Sub subtracts every counter, and keeps every level.
func TestSubOfEachField(t *testing.T) {
	var a, b stage.Stats
	x, y := reflect.ValueOf(&a).Elem(), reflect.ValueOf(&b).Elem()
	for i := range x.NumField() {
		switch x.Field(i).Kind() {
		case reflect.Uint64:
			x.Field(i).SetUint(7)
			y.Field(i).SetUint(5)
		case reflect.Int:
			x.Field(i).SetInt(7)
			y.Field(i).SetInt(5)
		}
	}
	d := reflect.ValueOf(a.Sub(b))
	for i := range d.NumField() {
		switch d.Field(i).Kind() {
		case reflect.Uint64:
			require.EqualValues(t, 2, d.Field(i).Uint(), d.Type().Field(i).Name)
		case reflect.Int:
			require.EqualValues(t, 7, d.Field(i).Int(), d.Type().Field(i).Name)
		}
	}
}

// If a resource becomes faster, the limiter starts again with large steps.
func TestClimbSeesAFasterResource(t *testing.T) {
	const knee = 160
	climb := stage.Climb(0, 0)
	width := knee
	windows := func(n int, fast float64) (farthest int) {
		for range n {
			const done = 10_000
			rate := fast * float64(min(width, knee))
			width = climb.Update(stage.Sample{Width: width, Busy: width, MinQueue: 10, Done: done, Elapsed: time.Duration(done / rate * float64(time.Second))})
			farthest = max(farthest, width-knee, knee-width)
		}
		return farthest
	}
	windows(60, 10) // no other width is better, so the steps become small
	require.LessOrEqual(t, windows(10, 10), knee/16)
	for width == knee { // until a step is tried
		windows(1, 10)
	}
	for width != knee { // until the step was rejected
		windows(1, 10)
	}
	require.Equal(t, knee/4, windows(3, 20))
}

// Retry is called with the number of failures in its own stage, without those in earlier stages.
func TestTriesOfEachStage(t *testing.T) {
	var tries [2][]int
	one := func(i int) *stage.Stage[int, int] {
		fails := 0
		return stage.New("s", func(_ context.Context, n int) (int, error) {
			if fails++; fails <= 2 {
				return 0, errOops
			}
			return n, nil
		}, stage.Options{Retry: func(_ error, try int) (time.Duration, bool) { tries[i] = append(tries[i], try); return 0, true }})
	}
	v, err := stage.Pipe(one(0), one(1)).Do(bg, 7)
	require.NoError(t, err)
	require.Equal(t, 7, v)
	require.Equal(t, [2][]int{{1, 2}, {1, 2}}, tries)
}

// A task that began on the caller of its Do keeps its priority in later tries.
func TestARetryOnTheCallerKeepsItsPriority(t *testing.T) {
	schedtest.OnFIFO(t, func(f *fifo.Scheduler) {
		var order []int
		var s *stage.Stage[int, int]
		s = stage.New("s", func(_ context.Context, n int) (int, error) {
			if order = append(order, n); len(order) == 1 {
				return 0, errOops
			}
			return n, nil
		}, stage.Options{On: f, Queue: 10, Retry: func(err error, _ int) (time.Duration, bool) {
			for n := range 2 { // these wait before the next try does
				if err := s.Submit(bg, n); err != nil {
					return 0, false
				}
			}
			return 0, errors.Is(err, errOops)
		}}).Prioritize(func(n int) int { return n })
		_, err := s.Do(bg, 3)
		require.NoError(t, err)
		require.NoError(t, s.Shutdown(bg))
		require.Equal(t, []int{3, 3, 1, 0}, order)
	})
}
