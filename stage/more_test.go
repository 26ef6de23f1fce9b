package stage_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/suspend"
)

// A task that has waited too long is shed and reported, and Do returns ErrLate.
func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dead atomic.Int32
		s := stage.New("s", func(context.Context, int) (int, error) {
			time.Sleep(10 * time.Millisecond)
			return 0, nil
		}, stage.Options{Queue: 100, Delay: 5 * time.Millisecond}).OnFail(func(_ context.Context, _ int, err error) {
			require.ErrorIs(t, err, stage.ErrLate)
			dead.Add(1)
		})
		var lates atomic.Int32
		var all sync.WaitGroup
		for range 300 {
			all.Go(func() {
				if _, err := s.Do(bg, 1); err != nil {
					require.ErrorIs(t, err, stage.ErrOverload)
					require.ErrorIs(t, err, stage.ErrLate)
					lates.Add(1)
				}
			})
			time.Sleep(5 * time.Millisecond)
		}
		all.Wait()
		require.NoError(t, s.Shutdown(bg))
		holds(t, s.Stats())
		require.EqualValues(t, s.Stats().Late, lates.Load())
		require.EqualValues(t, s.Stats().Late, dead.Load())
		require.InDelta(t, 150, int(lates.Load()), 25)
	})
}

func TestBatches(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
		let := make(chan struct{})
		go close(let)
		var sizes []int
		s := stage.NewBatch("b", func(ctx context.Context, in, out []int) error {
			sizes = append(sizes, len(in))
			errs := make(stage.Errors, len(in))
			for i, n := range in {
				out[i] = 2 * n
				if n%10 == 9 {
					errs[i] = errOops
				}
			}
			suspend.Yield()
			return errs
		}, stage.Options{On: on, Batch: 8, Queue: 100})
		next := stage.New("next", func(_ context.Context, n int) (int, error) { return n + 1, nil }, stage.Options{On: on})
		p := stage.Pipe(s, next)
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				v, err := p.Do(bg, i)
				if i%10 == 9 {
					require.Equal(t, errOops, err)
				} else {
					require.NoError(t, err)
					require.Equal(t, 2*i+1, v)
				}
			})
		}
		all.Wait()
		require.NoError(t, stage.Shutdown(bg, s, next))
		total := 0
		for _, n := range sizes {
			require.LessOrEqual(t, n, 8)
			total += n
		}
		require.Equal(t, 100, total)
		require.EqualValues(t, 90, s.Stats().Completed)
		require.EqualValues(t, 10, s.Stats().Failed)
		holds(t, s.Stats())
	})
}

// The Errors that a batch function returns say which of its four tasks have failed. A nil Errors, such as a declared and unused
// one, fails none. One with another length would let unhandled tasks succeed.
func TestErrorsOfABatch(t *testing.T) {
	broken := errors.New("broken")
	none, one := []bool{false, false, false, false}, []bool{false, true, false, false}
	every := []bool{true, true, true, true}
	for name, c := range map[string]struct {
		err    error
		failed []bool
	}{
		"nil":                {nil, none},
		"a nil Errors":       {stage.Errors(nil), none},
		"an empty Errors":    {stage.Errors{}, none},
		"without an error":   {make(stage.Errors, 4), none},
		"one":                {stage.Errors{1: errOops, 3: nil}, one},
		"wrapped":            {fmt.Errorf("insert: %w", fmt.Errorf("batch: %w", stage.Errors{1: errOops, 3: nil})), one},
		"too short":          {stage.Errors{errOops, nil}, every},
		"too long":           {stage.Errors{1: errOops, 4: nil}, every},
		"too short, wrapped": {fmt.Errorf("insert: %w", stage.Errors{errOops}), every},
		"a nil one, wrapped": {fmt.Errorf("insert: %w", stage.Errors(nil)), every},
		"beside another":     {errors.Join(make(stage.Errors, 4), broken), every},
		"with another":       {fmt.Errorf("%w: %w", broken, make(stage.Errors, 4)), every},
		"any other":          {broken, every},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stage.NewBatch("b", func(context.Context, []int, []int) error { return c.err }, stage.Options{Batch: 4, Queue: 4, Gather: time.Second})
				var answers []promise.Future[int]
				for i := range 4 {
					f, err := s.Begin(bg, i)
					require.NoError(t, err)
					answers = append(answers, f)
				}
				var failed []bool
				for i, f := range answers {
					_, err := f.Await(bg)
					failed = append(failed, err != nil)
					if err != nil && slices.Equal(c.failed, one) {
						require.Equal(t, errOops, err, "task %d", i)
					}
				}
				require.Equal(t, c.failed, failed)
				require.NoError(t, s.Shutdown(bg))
				holds(t, s.Stats())
			})
		})
	}
}

// An idle batch stage handles one task at a time, and a loaded one many, without a timer.
func TestBatchesAreNatural(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes []int
		s := stage.NewBatch("b", func(_ context.Context, in, _ []int) error {
			sizes = append(sizes, len(in))
			time.Sleep(10 * time.Millisecond)
			return nil
		}, stage.Options{Batch: 10, Queue: 100})
		for range 3 {
			_, err := s.Do(bg, 1)
			require.NoError(t, err)
		}
		for range 100 {
			require.NoError(t, s.Submit(bg, 1))
			time.Sleep(2 * time.Millisecond)
		}
		require.NoError(t, s.Shutdown(bg))
		require.Equal(t, []int{1, 1, 1, 1}, sizes[:4])
		require.InDelta(t, 5, slices.Max(sizes), 1)
	})
}

// A child of a batch is a child of each of its tasks.
func TestChildrenOfABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		leaf := stage.New("leaf", func(context.Context, int) (int, error) { <-let; return 0, errOops }, stage.Options{})
		s := stage.NewBatch("b", func(ctx context.Context, in, _ []int) error { return leaf.Submit(ctx, 1) }, stage.Options{})
		f, err := s.Begin(bg, 1)
		require.NoError(t, err)
		synctest.Wait()
		_, done, _ := f.Try()
		require.False(t, done)
		close(let)
		_, err = f.Await(bg)
		require.Equal(t, errOops, err)
		require.NoError(t, stage.Shutdown(bg, s, leaf))
	})
}

func TestBatchesThatDoNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead := 0
		s := stage.NewBatch("b", func(_ context.Context, in, _ []int) error {
			if in[0] == 1 {
				runtime.Goexit()
			}
			panic(errOops)
		}, stage.Options{OnPanic: func(any, []byte) {}}).OnFail(func(context.Context, int, error) { dead++ })
		_, err := s.Do(bg, 1)
		require.ErrorIs(t, err, suspend.ErrAbandoned)
		_, err = s.Do(bg, 2)
		require.ErrorIs(t, err, errOops)
		require.NoError(t, s.Shutdown(bg))
		require.Equal(t, 2, dead)
		holds(t, s.Stats())
	})
}

func TestEach(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
		s := stage.New("s", func(_ context.Context, n int) (int, error) {
			for range n * 7 % 5 {
				suspend.Yield()
			}
			if n%10 == 9 {
				return n, errOops
			}
			return 2 * n, nil
		}, stage.Options{On: on, Width: 4, Queue: 2, Reject: true})
		for _, unordered := range []bool{false, true} {
			schedtest.Run(t, on, func() {
				var got []int
				i := 0
				for v, err := range stage.Each(bg, s, numbers(100), stage.EachOptions{Window: 10, Unordered: unordered}) {
					if !unordered {
						if i%10 == 9 {
							require.Equal(t, errOops, err)
							v = 2 * i
						} else {
							require.NoError(t, err)
						}
						require.Equal(t, 2*i, v)
					}
					got = append(got, v)
					i++
				}
				require.Len(t, got, 100)
			})
		}
		schedtest.Run(t, on, func() { // a break waits for running tasks
			for v, err := range stage.Each(bg, s, numbers(100), stage.EachOptions{}) {
				require.NoError(t, err)
				if v == 6 {
					break
				}
			}
			st := s.Stats()
			require.Zero(t, st.Waiting+st.Busy)
			holds(t, st)
		})
		require.NoError(t, s.Shutdown(bg))
	})
}

func numbers(n int) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for i := range n {
			if !yield(i, nil) {
				return
			}
		}
	}
}

func TestEachIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		s := stage.New("s", func(ctx context.Context, n int) (int, error) { return n, suspend.Sleep(ctx, 300*time.Millisecond) }, stage.Options{Width: 2})
		n, errs := 0, 0
		var last error
		for _, err := range stage.Each(ctx, s, numbers(100), stage.EachOptions{Window: 4}) {
			if last = err; err == nil {
				n++
			} else {
				errs++
			}
		}
		require.ErrorIs(t, last, context.DeadlineExceeded)
		require.Equal(t, 6, n)
		require.LessOrEqual(t, errs, 5)
		require.NoError(t, s.Shutdown(bg))
		_, ok := <-ctx.Done()
		require.False(t, ok)
	})
}

// A task that a closed stage refuses is an error in its place.
func TestEachIsRefused(t *testing.T) {
	s := stage.New("s", double, stage.Options{})
	require.NoError(t, s.Shutdown(bg))
	n := 0
	for _, err := range stage.Each(bg, s, numbers(3), stage.EachOptions{}) {
		require.ErrorIs(t, err, stage.ErrClosed)
		n++
	}
	require.Equal(t, 3, n)
}

func TestReplicate(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
		last := make([]map[int]int, 3)
		r := stage.Replicate(3, func(n int) uint64 { return uint64(n % 7) }, func(i int) *stage.Stage[int, int] {
			last[i] = map[int]int{}
			return stage.New(fmt.Sprint("r", i), func(_ context.Context, n int) (int, error) {
				require.Equal(t, i, n%7%3, "another replica's")
				require.Less(t, last[i][n%7], n+1, "out of order")
				last[i][n%7] = n // the state of each replica is its own
				return n, nil
			}, stage.Options{On: on, Queue: 10})
		})
		p := stage.Pipe(r, stage.New("end", double, stage.Options{On: on}))
		for i := range 200 {
			require.NoError(t, p.Submit(bg, i))
		}
		v, err := p.Do(bg, 1000)
		require.NoError(t, err)
		require.Equal(t, 2000, v)
		require.NoError(t, r.Shutdown(bg))
		total := uint64(0)
		for _, o := range stage.Stages(r) {
			total += o.Stats().Completed
		}
		require.EqualValues(t, 201, total)
		require.Len(t, stage.Stages(p), 4)
	})
}

// A Do of replicas is a Do of one of its stages, so the handler may run on the caller. In a pipe it would run on a worker.
func TestReplicasRunOnTheCaller(t *testing.T) {
	r := stage.Replicate(2, nil, func(i int) *stage.Stage[int, int] {
		return stage.New(fmt.Sprint("r", i), func(context.Context, int) (int, error) { return int(gid.Get()), nil }, stage.Options{})
	})
	on, err := r.Do(bg, 1)
	require.NoError(t, err)
	require.EqualValues(t, gid.Get(), on)
	require.NoError(t, r.Shutdown(bg))
}

func TestReplicateByLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := stage.Replicate(3, nil, func(i int) *stage.Stage[int, int] {
			return stage.New(fmt.Sprint("r", i), func(_ context.Context, n int) (int, error) {
				time.Sleep(time.Second)
				return n, nil
			}, stage.Options{Queue: 5})
		})
		for i := range 9 {
			require.NoError(t, r.Submit(bg, i))
		}
		for _, s := range stage.Stages(r) {
			require.EqualValues(t, 3, s.Stats().Accepted)
		}
		require.NoError(t, r.Shutdown(bg))
	})
}

// scope.Map on a pool runs as many functions at a time as the width of the pool.
func TestScopeOnAPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := stage.NewPool("p", 3, nil)
		start := time.Now()
		out, err := scope.Map(bg, p, []int{1, 2, 3, 4, 5, 6, 7}, func(_ context.Context, n int) (int, error) {
			time.Sleep(time.Second)
			return n, nil
		})
		require.NoError(t, err)
		require.Len(t, out, 7)
		require.Equal(t, 3*time.Second, time.Since(start))
		require.NoError(t, p.Shutdown(bg))
	})
}

func TestHistogram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ds := rapid.SliceOfN(rapid.Int64Range(0, int64(15*time.Minute)), 1, 50).Draw(t, "durations")
		h := stage.HistogramOf(ds)
		slices.Sort(ds)
		for _, q := range []float64{0.1, 0.5, 0.9, 0.99, 1} {
			rank := min(max(int(q*float64(len(ds))), 1), len(ds))
			want := float64(ds[rank-1])
			got := float64(h.Quantile(q))
			if got < want*0.8-2 || got > want*1.25+2 {
				t.Fatalf("quantile %v is %v, want %v", q, got, want)
			}
		}
		var n uint64
		h.Buckets(func(_ time.Duration, cumulative uint64) bool { n = cumulative; return true })
		if n != uint64(len(ds)) || h.Count != n {
			t.Fatalf("%d of %d", n, len(ds))
		}
	})
}

// The figures of a period are differences.
func TestSub(t *testing.T) {
	s := stage.New("s", double, stage.Options{})
	_, _ = s.Do(bg, 1)
	before := s.Stats()
	for range 3 {
		_, _ = s.Do(bg, 1)
	}
	d := s.Stats().Sub(before)
	require.EqualValues(t, 3, d.Completed)
	require.EqualValues(t, 3, d.Service.Count)
	require.NoError(t, s.Shutdown(bg))
}
