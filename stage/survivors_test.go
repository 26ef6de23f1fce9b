package stage_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/suspend"
)

// A shared pool serves the stage whose first task has waited longest, so that no stage starves.
func TestPoolServesTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := stage.NewPool("p", 1, nil)
		var order []int
		let := make(chan struct{})
		make := func(name string) *stage.Stage[int, int] {
			return stage.New(name, func(_ context.Context, n int) (int, error) {
				if n == 0 {
					<-let
				}
				order = append(order, n)
				return n, nil
			}, stage.Options{Pool: p, Width: 1, Queue: 10})
		}
		a, b, c := make("a"), make("b"), make("c")
		require.NoError(t, a.Submit(bg, 0))
		synctest.Wait()
		for i, s := range []*stage.Stage[int, int]{c, a, b, a, a, c, b, a} {
			require.NoError(t, s.Submit(bg, i+1))
		}
		close(let)
		require.NoError(t, stage.Shutdown(bg, a, b, c))
		require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}, order)
	})
}

// The delay between two tries does not count as time in the queue: it is not in the figures, and causes no shedding.
func TestDelayOfARetryIsNoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stage.New("s", func(_ context.Context, n int) (int, error) {
			if n == 1 {
				return 0, errOops
			}
			return n, nil
		}, stage.Options{Delay: time.Millisecond, Retry: func(_ error, try int) (time.Duration, bool) { return time.Second, try < 10 }})
		f, err := s.Begin(bg, 1)
		require.NoError(t, err)
		_, err = f.Await(bg)
		require.ErrorIs(t, err, errOops)
		require.NotErrorIs(t, err, stage.ErrLate)
		st := s.Stats()
		require.Zero(t, st.Wait.Sum)
		require.EqualValues(t, 9, st.Retried)
		require.NoError(t, s.Shutdown(bg))
	})
}

// A task whose handler panicked is not tried again.
func TestPanicsAreNotRetried(t *testing.T) {
	for _, inline := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			tries := 0
			s := stage.New("s", func(context.Context, int) (int, error) { tries++; panic("once") },
				stage.Options{OnPanic: func(any, []byte) {}, Retry: func(_ error, try int) (time.Duration, bool) { return 0, try < 5 }})
			var err error
			if inline {
				_, err = s.Do(bg, 1)
			} else if f, e := s.Begin(bg, 1); e == nil {
				_, err = f.Await(bg)
			}
			var panicked *suspend.PanicError
			require.ErrorAs(t, err, &panicked)
			require.NoError(t, s.Shutdown(bg))
			require.Equal(t, 1, tries)
			require.Zero(t, s.Stats().Retried)
		})
	}
}

// The window of Each counts results that wait for earlier ones, so a slow first task delays the input.
func TestEachWindowCountsAnswersThatWait(t *testing.T) {
	for _, unordered := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := stage.New("s", func(_ context.Context, n int) (int, error) {
				if n == 0 {
					time.Sleep(time.Second)
				}
				return n, nil
			}, stage.Options{Width: 8})
			fed, most := 0, 0
			var seen atomic.Int64 // the input runs in parallel with the body of the loop
			in := func(yield func(int, error) bool) {
				for n := range 100 {
					fed++
					most = max(most, fed-int(seen.Load()))
					if !yield(n, nil) {
						return
					}
				}
			}
			for _, err := range stage.Each(bg, s, in, stage.EachOptions{Window: 4, Unordered: unordered}) {
				require.NoError(t, err)
				seen.Add(1)
			}
			require.EqualValues(t, 100, seen.Load())
			require.LessOrEqual(t, most, 5, "four, and the value that is being passed in")
			require.NoError(t, s.Shutdown(bg))
		})
	}
}

// A batch stage accepts as many tasks as Width batches and Queue tasks, and no more.
func TestBoundOfABatchStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		s := stage.NewBatch("s", func(_ context.Context, in, out []int) error {
			<-let
			return nil
		}, stage.Options{Width: 2, Queue: 5, Batch: 3, Reject: true})
		accepted := 0
		for i := range 30 {
			if err := s.Submit(bg, i); err == nil {
				accepted++
			} else {
				require.ErrorIs(t, err, stage.ErrFull)
			}
			synctest.Wait()
		}
		require.Equal(t, 2*3+5, accepted)
		close(let)
		require.NoError(t, s.Shutdown(bg))
		holds(t, s.Stats())
	})
}

// Service measures handlers: a task that was shed or cancelled before it began does not count.
func TestServiceIsOfHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stage.New("s", func(_ context.Context, n int) (int, error) {
			time.Sleep(50 * time.Millisecond)
			return n, nil
		}, stage.Options{Width: 1, Queue: 100, Delay: 5 * time.Millisecond})
		for i := range 40 {
			require.NoError(t, s.Submit(bg, i))
		}
		ctx, cancel := context.WithCancel(bg)
		for i := range 5 {
			_, err := s.Begin(ctx, i)
			require.NoError(t, err)
		}
		cancel()
		require.NoError(t, s.Shutdown(bg))
		st := s.Stats()
		holds(t, st)
		require.Positive(t, st.Late)
		require.EqualValues(t, 5, st.Cancelled)
		require.Equal(t, st.Completed, st.Service.Count)
		require.Equal(t, time.Duration(st.Completed)*50*time.Millisecond, st.Service.Sum)
	})
}

// Climb keeps a larger width only if it gains a third of what it costs.
func TestClimbIsWorthIt(t *testing.T) {
	for _, c := range []struct {
		gain float64 // the gain in throughput for a width that is larger by a quarter
		take bool
	}{{0, false}, {0.03, false}, {0.07, false}, {0.1, true}, {0.25, true}} {
		climb := stage.Climb(0, 0)
		rates := map[int]float64{40: 4000, 50: 4000 * (1 + c.gain)}
		sample := func(width int) int {
			return climb.Update(stage.Sample{Width: width, Busy: width, MinQueue: 10, Done: 1000, Elapsed: time.Duration(1000 / rates[width] * float64(time.Second)), Service: 10 * time.Millisecond})
		}
		require.Equal(t, 40, sample(40), "the first window is discarded")
		require.Equal(t, 50, sample(40), "a quarter wider")
		require.Equal(t, 50, sample(50), "thrown away")
		if to := sample(50); c.take {
			require.Greater(t, to, 50, "gain %v", c.gain)
		} else {
			require.Equal(t, 40, to, "gain %v", c.gain)
		}
	}
}

// A Do on its caller does not overtake: it runs there only if no task waits.
func TestInlineDoesNotOvertake(t *testing.T) {
	schedtest.OnFIFO(t, func(f *fifo.Scheduler) {
		var order []int
		s := stage.New("s", func(_ context.Context, n int) (int, error) {
			order = append(order, n)
			return n, nil
		}, stage.Options{On: f, Width: 3, Queue: 5})
		require.NoError(t, s.Submit(bg, 1)) // a worker for it is starting
		_, err := s.Do(bg, 2)
		require.NoError(t, err)
		require.Equal(t, []int{1, 2}, order)
	})
}

// The lowest quantile is the minimum, and a quantile of a single duration is this duration.
func TestQuantiles(t *testing.T) {
	h := stage.HistogramOf([]int64{1000, 1_000_000, 1_000_000, 1_000_000_000})
	for q, want := range map[float64]time.Duration{0: 1000, 0.25: 1000, 0.5: 1_000_000, 0.75: 1_000_000, 1: 1_000_000_000} {
		require.InEpsilon(t, float64(want), float64(h.Quantile(q)), 0.25, "%v", q)
	}
	one := stage.HistogramOf([]int64{12345})
	for _, q := range []float64{0, 0.5, 1} {
		require.InEpsilon(t, 12345, float64(one.Quantile(q)), 0.25)
	}
	none := stage.HistogramOf(nil)
	require.Zero(t, none.Quantile(0.5))
}

// Without a key, a task goes to the replica with the fewest tasks, or to the first of several such replicas.
func TestReplicasTakeTheShortest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		var at [3]atomic.Int32
		r := stage.Replicate(3, nil, func(i int) *stage.Stage[int, int] {
			return stage.New(fmt.Sprint("r", i), func(_ context.Context, n int) (int, error) {
				at[i].Add(1)
				<-let
				return n, nil
			}, stage.Options{Width: 10})
		})
		for i := range 4 {
			require.NoError(t, r.Submit(bg, i))
			synctest.Wait()
		}
		require.Equal(t, [3]int32{2, 1, 1}, [3]int32{at[0].Load(), at[1].Load(), at[2].Load()}, "the first of the replicas with the fewest tasks")
		close(let)
		require.NoError(t, errors.Join(r.Shutdown(bg)))
	})
}

// A window of a Limiter has at least ten tasks and five milliseconds.
func TestWindowOfALimiter(t *testing.T) {
	for _, took := range []time.Duration{100 * time.Microsecond, 10 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			var samples []stage.Sample
			s := stage.New("s", func(_ context.Context, n int) (int, error) { time.Sleep(took); return n, nil },
				stage.Options{Queue: 1000, Limit: limiter(func(sample stage.Sample) int { samples = append(samples, sample); return sample.Width })})
			for i := range 500 {
				require.NoError(t, s.Submit(bg, i))
			}
			require.NoError(t, s.Shutdown(bg))
			require.NotEmpty(t, samples)
			for _, sample := range samples {
				require.GreaterOrEqual(t, sample.Done, 10)
				require.GreaterOrEqual(t, sample.Elapsed, 5*time.Millisecond)
				require.Less(t, sample.Elapsed, 5*time.Millisecond+11*took, "and no more")
			}
		})
	}
}

// A result is passed on as soon as it is ready. If it waited for a full window, a stream of one value a minute would deliver it
// sixty-four minutes late.
func TestEachYieldsWhatIsReady(t *testing.T) {
	for _, unordered := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := stage.New("s", double, stage.Options{Width: 4})
			in, begun, next := chanx.New[int](0), time.Now(), 0
			go func() {
				for i := range 8 {
					_ = in.Send(bg, i)
					time.Sleep(time.Minute)
				}
				_ = in.Close()
			}()
			for v, err := range stage.Each(bg, s, in.All(bg), stage.EachOptions{Window: 4, Unordered: unordered}) {
				require.NoError(t, err)
				require.Equal(t, 2*next, v)
				require.Equal(t, time.Duration(next)*time.Minute, time.Since(begun))
				next++
			}
			require.Equal(t, 8, next)
			require.NoError(t, s.Shutdown(bg))
		})
	}
}

// The iteration ends at once, even if its input waits for a long time and does not use ctx.
func TestEachEndsWithoutItsInput(t *testing.T) {
	for _, how := range []string{"break", "panic", "ctx"} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(bg)
			defer stop()
			s := stage.New("s", double, stage.Options{Width: 4})
			in, begun, left := chanx.New[int](1), time.Now(), false
			_ = in.Send(bg, 1)
			var last error
			func() {
				defer func() { _ = recover() }()
				for _, err := range stage.Each(ctx, s, func(yield func(int, error) bool) {
					defer func() { left = true }()
					in.All(bg)(yield)
				}, stage.EachOptions{}) {
					switch last = err; how {
					case "break":
						return
					case "panic":
						panic("oops")
					}
					stop()
				}
			}()
			require.True(t, left, how)
			require.Zero(t, time.Since(begun))
			if how == "ctx" {
				require.ErrorIs(t, last, context.Canceled)
			}
			require.NoError(t, in.Send(bg, 2))
			_, ok, _ := in.TryRecv()
			require.True(t, ok, "the input has received it")
			require.NoError(t, s.Shutdown(bg))
		})
	}
}

// If the input fails, the iteration ends with its error, after the results of the tasks in flight. ErrInput distinguishes it from
// the error of a task.
func TestEachOfAnInputThatFails(t *testing.T) {
	for _, unordered := range []bool{false, true} {
		for n := range 3 {
			synctest.Test(t, func(t *testing.T) {
				oops := errors.New("oops")
				s := stage.New("s", func(ctx context.Context, n int) (int, error) {
					if err := suspend.Sleep(ctx, time.Minute); err != nil || n > 0 {
						return n, err
					}
					return 0, oops
				}, stage.Options{Width: 4})
				in := func(yield func(int, error) bool) {
					for i := range n {
						if !yield(i, nil) {
							return
						}
					}
					if yield(7, oops) {
						t.Error("continues after its error")
					}
				}
				var got []int
				var last error
				for v, err := range stage.Each(bg, s, in, stage.EachOptions{Unordered: unordered}) {
					require.NotErrorIs(t, last, stage.ErrInput, "a pair after the error")
					last = err
					got = append(got, v)
				}
				require.ErrorIs(t, last, stage.ErrInput)
				require.ErrorIs(t, last, oops)
				require.EqualError(t, last, "stage: the input failed: oops")
				require.Len(t, got, n+1)
				require.NotContains(t, got, 7)
				require.NoError(t, s.Shutdown(bg))
			})
		}
	}
}

// A Stream over an Each ends with the first failed task.
func TestAStreamOverAnEach(t *testing.T) {
	s := stage.New("s", func(_ context.Context, n int) (int, error) {
		if n == 1 {
			return 0, stage.ErrFull
		}
		return n, nil
	}, stage.Options{})
	var got []error
	for _, err := range scope.Stream(bg, nil, 2, stage.Each(bg, s, numbers(4), stage.EachOptions{}), func(_ context.Context, n int) (int, error) { return n, nil }) {
		got = append(got, err)
	}
	require.Equal(t, []error{nil, stage.ErrFull}, got)
	require.NoError(t, s.Shutdown(bg))
}

// A panic of the input reaches the caller after the tasks in flight have ended.
func TestEachOfAnInputThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stage.New("s", func(ctx context.Context, n int) (int, error) { return n, suspend.Sleep(ctx, time.Hour) }, stage.Options{Width: 4})
		schedtest.Panics(t, "oops", func() {
			for range stage.Each(bg, s, func(yield func(int, error) bool) { yield(1, nil); panic("oops") }, stage.EachOptions{}) {
				t.Error("an answer")
			}
		})
		require.Zero(t, s.Stats().Busy)
		require.NoError(t, s.Shutdown(bg))
	})
}
