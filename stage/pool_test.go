package stage_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

// A pool forgets a closed and empty stage, so that the stage is freed.
func TestStagesComeAndGo(t *testing.T) {
	defer schedtest.Within(t, 5*time.Minute)()
	n := 50_000
	if testing.Short() || schedtest.Race {
		n = 5_000
	}
	used := stage.NewPool("used", 1, nil)
	handler := func(_ context.Context, n int) (int, error) { return n, nil }
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range n {
		s := stage.New("s", handler, stage.Options{Pool: used})
		if _, err := s.Begin(bg, i); err != nil {
			t.Fatal(err)
		}
		if err := s.Shutdown(bg); err != nil {
			t.Fatal(err)
		}
	}
	kept := (float64(heap()) - float64(before)) / float64(n)
	t.Logf("%.1f bytes kept for each of %d stages", kept, n)
	require.Less(t, kept, 64.0)
	runtime.KeepAlive(used)
}

// Stages without waiting tasks do not cost the others anything: the pool does not look at them.
func TestIdleStagesCostNothing(t *testing.T) {
	p := stage.NewPool("p", 1, nil)
	for range 1000 {
		idle := stage.New("idle", func(_ context.Context, n int) (int, error) { return n, nil }, stage.Options{Pool: p})
		f, err := idle.Begin(bg, 1)
		require.NoError(t, err)
		v, err := f.Await(bg)
		require.NoError(t, err)
		require.Equal(t, 1, v)
	}
	require.LessOrEqual(t, stage.Loaded(p), 2)
}

// A Shutdown waits for the workers only if no other stage of the pool is open. If another stage is opened meanwhile, it returns.
func TestCloseOfOneStageOfAPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := stage.NewPool("p", 2, nil)
		a, b := hold(stage.Options{Pool: p}), hold(stage.Options{Pool: p})
		for _, h := range []held{a, b} {
			require.NoError(t, h.s.Submit(bg, 1))
			<-h.begun
		}
		a.close(t)
		require.Equal(t, 1, p.Stats().Idle, "b is open, so the worker lingers")
		require.ErrorIs(t, a.s.Submit(bg, 1), stage.ErrClosed)
		require.NoError(t, a.s.Shutdown(bg), "again")
		start := time.Now()
		b.close(t)
		require.Zero(t, p.Stats().Workers, "the last stage takes the workers with it")
		require.Zero(t, time.Since(start), "and waits for none to leave by itself")
		require.NoError(t, a.s.Shutdown(bg), "and again")

		c := hold(stage.Options{Pool: p})
		require.NoError(t, c.s.Submit(bg, 1))
		<-c.begun
		c.close(t)
		require.Zero(t, p.Stats().Workers)
	})
}

// A stage that is narrower than what runs in it takes no worker from the others.
func TestNarrowerStageTakesNoWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := stage.NewPool("p", 3, nil)
		a := hold(stage.Options{Pool: p, Width: 2, Queue: 2})
		for i := range 3 {
			require.NoError(t, a.s.Submit(bg, i))
		}
		synctest.Wait()
		require.Len(t, a.begun, 2)
		a.s.SetWidth(1)
		b := hold(stage.Options{Pool: p, Width: 1})
		require.NoError(t, b.s.Submit(bg, 1))
		synctest.Wait()
		require.Len(t, b.begun, 1, "a permit is free, and nobody takes it")
		b.close(t)
		a.close(t)
	})
}

var (
	_ suspend.Spawner  = (*stage.Pool)(nil)
	_ sched.Withdrawer = (*stage.Pool)(nil)
)

// A Pool runs every accepted function, here at most two at a time, and later four.
func TestPoolIsASpawner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := stage.NewPool("p", 2, nil)
		var all sync.WaitGroup
		let := make(chan struct{})
		for range 5000 {
			all.Add(1)
			require.NoError(t, p.Go(func() { defer all.Done(); <-let }))
		}
		synctest.Wait()
		require.Equal(t, 2, p.Stats().Running)
		p.SetWidth(4)
		synctest.Wait()
		require.Equal(t, 4, p.Stats().Running)
		close(let)
		all.Wait()
		require.NoError(t, p.Shutdown(bg))
		require.ErrorIs(t, p.Go(func() {}), suspend.ErrClosed)
		require.PanicsWithValue(t, "stage: nil function", func() { _ = p.Go(nil) })
		require.PanicsWithValue(t, "stage: nil function", func() { _ = p.GoUntil(bg, func() {}, nil) })
	})
}

// A scope on a Pool ends when its context ends, even if others use the Pool. The same holds for a nested scope, whose functions
// wait for the place of their own parent. Functions that have not begun never run.
func TestPoolGivesBackWhatHasNotBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := stage.NewPool("p", 2, nil)
		let, ran := make(chan struct{}), atomic.Int32{}
		for range 2 {
			require.NoError(t, p.Go(func() { <-let }))
		}
		count := func(context.Context, int) (int, error) { ran.Add(1); return 0, nil }
		start := time.Now()
		for i := range 1000 { // the queue does not grow
			ctx, stop := context.WithTimeout(bg, 100*time.Millisecond)
			_, err := scope.Map(ctx, p, make([]int, 3), count)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, time.Duration(i+1)*100*time.Millisecond, time.Since(start))
			stop()
		}
		require.LessOrEqual(t, stage.Waiting(p), 6)
		close(let)
		synctest.Wait()
		require.Zero(t, ran.Load())

		ctx, stop := context.WithTimeout(bg, time.Second)
		defer stop()
		start = time.Now()
		_, err := scope.Map(ctx, p, make([]int, 100), func(ctx context.Context, _ int) ([]int, error) {
			return scope.Map(ctx, p, make([]int, 10), count)
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(start))
		_, err = scope.Map(bg, p, make([]int, 5000), count)
		require.NoError(t, err)
		require.NoError(t, p.Shutdown(bg))
		require.EqualValues(t, 5000, ran.Load())
	})
}

// A Shutdown that ends early leaves no function unstarted, because the callers of accepted functions wait for them.
func TestPoolRunsWhatACloseCutsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := stage.NewPool("p", 1, nil)
		let := make(chan struct{})
		require.NoError(t, p.Go(func() { <-let }))
		done := make(chan error, 1)
		go func() {
			_, err := scope.Map(bg, p, make([]int, 10), func(context.Context, int) (int, error) { return 0, nil })
			done <- err
		}()
		synctest.Wait()
		ctx, stop := context.WithTimeout(bg, time.Second)
		defer stop()
		require.ErrorIs(t, p.Shutdown(ctx), context.DeadlineExceeded)
		require.NoError(t, <-done)
		close(let)
		require.NoError(t, p.Shutdown(bg))
	})
}

// Close and Shutdown wait for the functions that an earlier Shutdown has cut off, on each scheduler.
func TestPoolWaitsForWhatItCutsOff(t *testing.T) {
	over, stop := context.WithCancel(bg)
	stop()
	for name, end := range map[string]func(p *stage.Pool) error{
		"Close":    (*stage.Pool).Close,
		"Shutdown": func(p *stage.Pool) error { return p.Shutdown(bg) },
	} {
		t.Run(name, func(t *testing.T) {
			schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
				p := stage.NewPool("p", 1, on)
				first, others := promise.New[int](), promise.New[int]()
				var returned atomic.Int32
				for _, wait := range []*promise.Promise[int]{first, others, others} {
					require.NoError(t, p.Go(func() {
						_, _ = wait.Await(bg)
						suspend.Yield()
						returned.Add(1)
					}))
				}
				err := p.Shutdown(over)
				require.ErrorIs(t, err, context.Canceled)
				require.EqualError(t, err, "p: closed while 3 functions have not returned: context canceled")
				require.True(t, first.Fill(1))
				schedtest.Eventually(t, "the first has returned", func() bool { return returned.Load() == 1 })
				schedtest.Eventually(t, "two are left", func() bool {
					return strings.HasPrefix(fmt.Sprint(p.Shutdown(over)), "p: closed while 2 functions have not returned")
				})
				done := make(chan error, 1)
				go func() { done <- end(p) }()
				schedtest.Quiet(t) // by now a call that does not wait has returned
				require.Empty(t, done, "two functions have not returned")
				require.True(t, others.Fill(1))
				require.NoError(t, <-done)
				require.EqualValues(t, 3, returned.Load())
				require.NoError(t, errors.Join(p.Shutdown(over), p.Close()), "nothing is left")
			})
		})
	}
}

// Exactly one of the function and its withdrawal is called, whenever the context ends.
func TestPoolWithdrawsOrRuns(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
		p := stage.NewPool("p", 2, on)
		const n = 2000
		calls, both := make([]atomic.Int32, n), [2]atomic.Int32{}
		var all sync.WaitGroup
		for i := range n {
			all.Add(1)
			ctx, stop := cancel.New(bg)
			note := func(which int) func() {
				return func() { calls[i].Add(1); both[which].Add(1); all.Done() }
			}
			require.NoError(t, p.GoUntil(ctx, note(0), note(1)))
			switch i % 4 {
			case 0:
				stop(nil)
			case 1:
				go stop(nil)
			default:
				defer stop(nil)
			}
		}
		all.Wait()
		require.NoError(t, p.Shutdown(bg))
		for i := range calls {
			require.EqualValues(t, 1, calls[i].Load())
		}
		require.Positive(t, both[0].Load())
		require.Positive(t, both[1].Load())
		require.Zero(t, stage.Waiting(p))
	})
}
