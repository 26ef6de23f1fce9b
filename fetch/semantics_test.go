package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/fetch"
	"github.com/braidgo/braid/fetch/fetchtest"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/lazy"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// This file has the table of semantics, with a test for each row.

type numbers = fetchtest.Source[int, int]

var errOdd = errors.New("odd")

// newNumbers returns a source that doubles numbers. Negative keys are not found, and 13 fails.
func newNumbers(o fetch.SourceOptions) *numbers {
	return fetchtest.New("numbers", func(k int) (int, error) {
		switch {
		case k < 0:
			return 0, fetch.ErrNotFound
		case k == 13:
			return 0, errOdd
		}
		return 2 * k, nil
	}, o)
}

// newCounted returns such a source that also counts the batches whose contexts have ended before the answer.
func newCounted(o fetch.SourceOptions) (src *numbers, cancelled *atomic.Int32) {
	src, cancelled = newNumbers(o), new(atomic.Int32)
	src.Source = fetch.New("numbers", func(ctx context.Context, b *fetch.Batch[int, int]) error {
		err := src.Load(ctx, b)
		if err != nil && err == ctx.Err() {
			cancelled.Add(1)
		}
		return err
	}, o)
	return src, cancelled
}

// getter returns one of several functions for Together.
func getter(src *numbers, k int) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		_, err := src.Get(ctx, k)
		return err
	}
}

func TestTheSameKeyIsOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newNumbers(fetch.SourceOptions{})
		require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
			release := src.Pause()
			again := func(ctx context.Context) error { // while the request is open
				return suspend.Blocking(ctx, func() { synctest.Wait(); release() })
			}
			require.NoError(t, fetch.Together(ctx, getter(src, 1), getter(src, 1), func(ctx context.Context) error {
				var p promise.Promise[int]
				return fetch.Together(ctx, getter(src, 1), again, func(ctx context.Context) error { _ = p.Fill(1); return nil })
			}))
			_, first := src.Get(ctx, 13) // and after the response
			_, second := src.Get(ctx, 13)
			require.ErrorIs(t, first, errOdd)
			require.Same(t, first, second)
			require.Equal(t, fetch.Stats{Rounds: 2, Batches: 2, Keys: 2, Gets: 5, Shared: 3, Errors: 1}, fetch.Of(ctx).Stats())
			return getter(src, 1)(ctx)
		}, fetch.Options{}))
		require.Equal(t, [][]int{{1}, {13}}, src.Batches())
	})
}

func TestGetWithADoneContext(t *testing.T) {
	src := newNumbers(fetch.SourceOptions{})
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		require.NoError(t, getter(src, 1)(ctx))
		done, cancel := context.WithCancelCause(ctx)
		cause := errors.New("enough")
		cancel(cause)
		for _, k := range []int{1, 2} { // 1 is already loaded
			_, err := src.Get(done, k)
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, cause)
			_, err = src.All(done, []int{k})
			require.ErrorIs(t, err, cause)
		}
		require.Equal(t, 1, fetch.Of(ctx).Stats().Gets)
		return nil
	}, fetch.Options{}))
	require.Equal(t, [][]int{{1}}, src.Batches())
}

// cancelOne runs several tasks that fetch keys, and cancels one of them, before or after the dispatch.
func cancelOne(t *testing.T, src *numbers, after bool, cancelled []int, others []int, then func(ctx context.Context)) (stats fetch.Stats) {
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
			defer func() { stats = fetch.Of(ctx).Stats() }()
			one, cancel := context.WithCancel(ctx)
			release := src.Pause()
			var err error
			fs := []func(ctx context.Context) error{func(context.Context) error {
				_, err = src.All(one, cancelled)
				return nil
			}}
			for _, k := range others {
				fs = append(fs, getter(src, k))
			}
			fs = append(fs, func(ctx context.Context) error {
				if !after {
					cancel()
					return nil
				}
				return suspend.Blocking(ctx, func() {
					synctest.Wait()
					cancel()
					synctest.Wait()
					if len(others) > 0 {
						release()
					}
				})
			})
			if !after {
				release()
			}
			require.NoError(t, fetch.Together(ctx, fs...))
			require.ErrorIs(t, err, context.Canceled)
			release()
			then(ctx)
			return nil
		}, fetch.Options{}))
	})
	return stats
}

func TestCancelledWaiterLeavesTheOthers(t *testing.T) {
	for _, after := range []bool{false, true} {
		src, cancelled := newCounted(fetch.SourceOptions{})
		stats := cancelOne(t, src, after, []int{1}, []int{1}, func(ctx context.Context) { require.NoError(t, getter(src, 1)(ctx)) })
		require.Equal(t, [][]int{{1}}, src.Batches())
		require.Zero(t, stats.Dropped)
		require.Zero(t, cancelled.Load())
	}
}

func TestLastWaiterGoesBeforeDispatch(t *testing.T) {
	src := newNumbers(fetch.SourceOptions{})
	stats := cancelOne(t, src, false, []int{1, 2}, []int{2, 3}, func(ctx context.Context) {})
	require.Equal(t, [][]int{{2, 3}}, src.Batches())
	require.Equal(t, 1, stats.Dropped)
	require.Equal(t, 1, stats.Rounds)

	src = newNumbers(fetch.SourceOptions{})
	stats = cancelOne(t, src, false, []int{1}, nil, func(ctx context.Context) {
		require.Zero(t, fetch.Of(ctx).Stats().Rounds, "a round of nothing")
		require.NoError(t, getter(src, 1)(ctx), "the key is forgotten, and requested again")
	})
	require.Equal(t, [][]int{{1}}, src.Batches())
	require.Equal(t, 1, stats.Rounds)
}

func TestLastWaiterOfAKeyOfANeededBatch(t *testing.T) {
	src, cancelled := newCounted(fetch.SourceOptions{})
	cancelOne(t, src, true, []int{1}, []int{2}, func(ctx context.Context) { require.NoError(t, getter(src, 1)(ctx)) })
	require.Equal(t, [][]int{{1, 2}}, src.Batches(), "the answer is remembered, though nobody waited for it")
	require.Zero(t, cancelled.Load())
}

func TestLastWaiterOfABatch(t *testing.T) {
	src, cancelled := newCounted(fetch.SourceOptions{})
	cancelOne(t, src, true, []int{1, 2}, nil, func(ctx context.Context) {
		require.NoError(t, getter(src, 1)(ctx))
	})
	require.Equal(t, [][]int{{1, 2}, {1}}, src.Batches(), "the batch is forgotten, and the key is requested again")
	require.EqualValues(t, 1, cancelled.Load())
}

// A Get that joins a batch that is being cancelled must not get the cancellation. It sends its key again.
func TestGetThatComesWhileABatchIsBeingCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls int
		leave := make(chan struct{})
		src := fetch.New("slow", func(ctx context.Context, b *fetch.Batch[int, int]) error {
			if calls++; calls == 1 {
				<-ctx.Done()
				<-leave // takes its time to end
				b.Set(1, -1)
				return nil
			}
			b.Set(1, calls)
			return nil
		}, fetch.SourceOptions{})
		ctx, s := fetch.Open(t.Context(), fetch.Options{})
		one, cancel := context.WithCancel(ctx)
		go func() { synctest.Wait(); cancel() }()
		_, err := src.Get(one, 1)
		require.ErrorIs(t, err, context.Canceled)
		v := 0
		go func() { v, err = src.Get(ctx, 1) }()
		synctest.Wait()
		close(leave)
		synctest.Wait()
		require.Equal(t, 2, v)
		require.NoError(t, err)
		s.Close()
	})
}

func TestCancellationMeetsTheAnswer(t *testing.T) {
	src := newNumbers(fetch.SourceOptions{Inline: true})
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		one, cancel := context.WithCancel(ctx)
		err := fetch.Together(ctx, func(context.Context) error {
			_, err := src.Get(one, 1)
			cancel()
			require.NoError(t, err)
			_, err = src.Get(one, 1)
			require.ErrorIs(t, err, context.Canceled)
			return nil
		})
		require.NoError(t, getter(src, 1)(ctx))
		return err
	}, fetch.Options{}))
	require.Equal(t, [][]int{{1}}, src.Batches())
}

func TestSourceReturnsAnError(t *testing.T) {
	down := errors.New("down")
	calls := 0
	bad := fetch.New("bad", func(_ context.Context, b *fetch.Batch[int, int]) error {
		calls++
		return down
	}, fetch.SourceOptions{})
	good := newNumbers(fetch.SourceOptions{})
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		for k := 1; k <= 2; k++ {
			_, err := good.Get(ctx, 1)
			require.NoError(t, err)
			_, err = bad.Get(ctx, k)
			_, again := bad.Get(ctx, k)
			require.Same(t, err, again)
			var e *fetch.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, fetch.Error{Source: "bad", Key: k, Err: down}, *e)
			require.EqualError(t, err, fmt.Sprintf("bad %d: down", k))
		}
		return nil
	}, fetch.Options{}))
	require.Equal(t, 2, calls, "the error is remembered")
}

// If a source fails, it has read only some of its rows. All keys get its error, because the values that it has set may be incomplete.
func TestAnErrorIsNeverDropped(t *testing.T) {
	down, own := errors.New("down"), errors.New("own")
	half := new(int)
	every := func(ks []int) map[int]*int {
		m := map[int]*int{}
		for _, k := range ks {
			m[k] = nil // a one-to-many source has an entry for each key
		}
		return m
	}
	setAll := func(_ context.Context, b *fetch.Batch[int, *int]) error {
		for _, k := range b.Keys() {
			b.Set(k, half)
		}
		return down // the error of rows.Err
	}
	for name, src := range map[string]*fetch.Source[int, *int]{
		"ByMap":   fetch.ByMap("s", func(_ context.Context, ks []int) (map[int]*int, error) { return every(ks), down }, fetch.SourceOptions{}),
		"BySlice": fetch.BySlice("s", func(_ context.Context, ks []int) ([]*int, error) { return make([]*int, len(ks)), down }, fetch.SourceOptions{}),
		"New":     fetch.New("s", setAll, fetch.SourceOptions{}),
		"Each":    fetch.ByKey("s", 1, func(context.Context, int) (*int, error) { return half, down }, fetch.SourceOptions{}),
		"Inline":  fetch.New("s", setAll, fetch.SourceOptions{Inline: true}),
		"Shared":  fetch.Shared(fetch.New("s", setAll, fetch.SourceOptions{MaxBatch: 1}), 1),
		"some": fetch.New("s", func(ctx context.Context, b *fetch.Batch[int, *int]) error {
			b.Set(1, half)
			return down
		}, fetch.SourceOptions{}),
		"absent": fetch.New("s", func(ctx context.Context, b *fetch.Batch[int, *int]) error {
			for _, k := range b.Keys() {
				b.Fail(k, fetch.ErrNotFound)
			}
			return down
		}, fetch.SourceOptions{}),
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
				_, err := src.All(ctx, []int{1, 2, 3})
				require.ErrorIs(t, err, down)
				for k := 1; k <= 3; k++ {
					v, found, err := src.Find(ctx, k)
					require.EqualError(t, err, fmt.Sprintf("s %d: down", k))
					require.False(t, found)
					require.Nil(t, v)
				}
				require.Equal(t, 3, fetch.Of(ctx).Stats().Errors)
				return nil
			}, fetch.Options{}))
		})
	}
	write := fetch.NewEffect("write", func(_ context.Context, b *fetch.Batch[int, int]) error {
		b.Set(1, 1)
		b.Fail(2, own)
		return down
	}, fetch.SourceOptions{})
	src := fetch.New("s", func(_ context.Context, b *fetch.Batch[int, int]) error {
		b.Set(1, 1)
		b.Fail(2, own)
		return down
	}, fetch.SourceOptions{})
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		var errs [4]error
		require.NoError(t, fetch.Together(ctx,
			func(ctx context.Context) error { _, errs[0] = src.Get(ctx, 1); return nil },
			func(ctx context.Context) error { _, errs[1] = src.Get(ctx, 2); return nil },
			func(ctx context.Context) error { _, errs[2] = write.Do(ctx, 1); return nil },
			func(ctx context.Context) error { _, errs[3] = write.Do(ctx, 2); return nil }))
		require.ErrorIs(t, errs[0], down)
		require.ErrorIs(t, errs[1], own, "a key that has failed by itself says why")
		require.ErrorIs(t, errs[2], down)
		require.ErrorIs(t, errs[3], own)
		return nil
	}, fetch.Options{}))
}

func TestSourceAnswersSomeKeysOnly(t *testing.T) {
	src := newNumbers(fetch.SourceOptions{})
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		_, err := src.All(ctx, []int{1, -1, -2})
		require.ErrorIs(t, err, fetch.ErrNotFound)
		require.EqualError(t, err, "numbers -1: fetch: not found")
		_, ok, err := src.Find(ctx, -2)
		require.False(t, ok)
		require.NoError(t, err)
		v, ok, err := src.Find(ctx, 1)
		require.Equal(t, []any{2, true, nil}, []any{v, ok, err})
		_, _, err = src.Find(ctx, 13)
		require.ErrorIs(t, err, errOdd)
		return nil
	}, fetch.Options{}))
	require.Equal(t, [][]int{{1, -1, -2}, {13}}, src.Batches())
}

func TestBySliceOfAnotherLength(t *testing.T) {
	for _, n := range []int{0, 1, 3} {
		src := fetch.BySlice("slice", func(context.Context, []int) ([]int, error) { return make([]int, n), nil }, fetch.SourceOptions{})
		err := fetch.Run(t.Context(), func(ctx context.Context) error {
			_, err := src.All(ctx, []int{1, 2})
			return err
		}, fetch.Options{})
		require.EqualError(t, err, fmt.Sprintf("slice 1: fetch: %d values for 2 keys", n))
	}
}

func TestSourcePanics(t *testing.T) {
	value := &struct{ text string }{"oops"}
	calls := 0
	src := fetch.New("panics", func(context.Context, *fetch.Batch[int, int]) error { calls++; panic(value) }, fetch.SourceOptions{})
	for _, on := range []suspend.Spawner{nil, suspend.Goroutines} {
		calls = 0
		var seen []any
		var mu sync.Mutex
		catch := func(ctx context.Context) error {
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, recover())
			}()
			_, err := src.Get(ctx, 1)
			return err
		}
		require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
			return errors.Join(fetch.Together(ctx, catch, catch), catch(ctx))
		}, fetch.Options{On: on}))
		require.Equal(t, []any{value, value, value}, seen)
		require.Equal(t, 1, calls)
		require.PanicsWithValue(t, value, func() {
			_ = fetch.Run(t.Context(), func(ctx context.Context) error {
				_, err := src.Get(ctx, 1)
				return err
			}, fetch.Options{On: on})
		}, "and out of Run")
	}
}

func TestSourceExits(t *testing.T) {
	whole := fetch.New("exits", func(_ context.Context, b *fetch.Batch[int, int]) error {
		b.Set(1, 1)
		runtime.Goexit()
		return nil
	}, fetch.SourceOptions{})
	each := fetch.ByKey("exits", 1, func(_ context.Context, k int) (int, error) {
		if k != 1 {
			runtime.Goexit()
		}
		return k, nil
	}, fetch.SourceOptions{})
	for _, src := range []*fetch.Source[int, int]{whole, each} {
		require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
			_, err := src.All(ctx, []int{2, 3, 1})
			require.EqualError(t, err, "exits 2: fetch: the source did not return")
			v, err := src.Get(ctx, 1)
			if src == whole {
				require.ErrorIs(t, err, suspend.ErrAbandoned, "the values that it has set may be incomplete")
			} else {
				require.NoError(t, err)
				require.Equal(t, 1, v, "another call has answered it")
			}
			return nil
		}, fetch.Options{}))
	}
}

func TestSourceFetches(t *testing.T) {
	other := newNumbers(fetch.SourceOptions{})
	src := fetch.ByMap("fetches", func(ctx context.Context, ks []int) (map[int]int, error) {
		_, direct := other.Get(ctx, 1)
		require.ErrorIs(t, direct, fetch.ErrInSource)
		run := fetch.Run(ctx, func(context.Context) error { return nil }, fetch.Options{})
		require.ErrorIs(t, run, fetch.ErrInSource)
		_, all := fetch.Map(ctx, ks, other.Get)
		require.ErrorIs(t, all, fetch.ErrInSource)
		return nil, direct
	}, fetch.SourceOptions{})
	err := fetch.Run(t.Context(), func(ctx context.Context) error { _, err := src.Get(ctx, 1); return err }, fetch.Options{})
	require.ErrorIs(t, err, fetch.ErrInSource)
}

func TestFirstErrorInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := errors.New("first"), errors.New("second")
		slow := newNumbers(fetch.SourceOptions{})
		release := slow.Pause()
		var told error
		started := false
		err := fetch.Run(t.Context(), func(ctx context.Context) error {
			_, err := fetch.Map(ctx, []int{0, 1, 2, 3}, func(ctx context.Context, i int) (int, error) {
				switch i {
				case 0:
					_, err := slow.Get(ctx, 0) // began before the failure, and continues
					return 0, err
				case 1:
					_, _ = slow.Get(ctx, 1)
					return 0, first
				case 2:
					suspend.Yield()  // lets 3 begin
					return 0, second // fails first
				case 3:
					go func() { synctest.Wait(); release() }()
					<-ctxDone(ctx) // fails after 0 has ended and 1 has failed
					told = context.Cause(ctx)
					return 0, told
				}
				return 0, nil
			})
			_, _ = fetch.Map(ctx, []int{0, 1}, func(_ context.Context, i int) (int, error) {
				started = started || i > 0
				return 0, second
			})
			return err
		}, fetch.Options{})
		require.ErrorIs(t, err, first)
		require.ErrorIs(t, told, first, "the other functions are cancelled")
		require.False(t, started, "or not begun")
	})
}

// ctxDone waits without blocking the scheduler.
func ctxDone(ctx context.Context) <-chan struct{} {
	_, _ = suspend.Do(context.Background(), suspend.Done(ctx))
	return ctx.Done()
}

func TestPanicsFollowTheSameOrder(t *testing.T) {
	for _, on := range []suspend.Spawner{nil, suspend.Goroutines} {
		run := func(fs ...func(ctx context.Context) error) (err error) {
			return fetch.Run(t.Context(), func(ctx context.Context) error { return fetch.Together(ctx, fs...) }, fetch.Options{On: on})
		}
		src := newNumbers(fetch.SourceOptions{})
		fails := func(ctx context.Context) error { _, err := src.Get(ctx, 13); return err }
		panics := func(context.Context) error { panic("oops") }
		require.ErrorIs(t, run(getter(src, 1), fails, panics), errOdd)
		require.PanicsWithValue(t, "oops", func() { _ = run(getter(src, 1), panics, fails) })
	}
}

func TestGoexitInAnItem(t *testing.T) {
	for _, first := range []bool{false, true} {
		ended := make(chan string)
		go func() {
			how := "exited"
			defer func() { ended <- how }()
			exits := func(context.Context) error { runtime.Goexit(); return nil }
			fs := []func(context.Context) error{getter(newNumbers(fetch.SourceOptions{}), 1), exits}
			if first {
				fs[0], fs[1] = fs[1], fs[0]
			}
			_ = fetch.Run(context.Background(), func(ctx context.Context) error { return fetch.Together(ctx, fs...) }, fetch.Options{})
			how = "returned"
		}()
		require.Equal(t, "exited", <-ended)
	}
}

func TestRunInATaskOfARun(t *testing.T) {
	src := newNumbers(fetch.SourceOptions{})
	library := func(o fetch.Options, k int) func(ctx context.Context) error {
		return func(ctx context.Context) error { return fetch.Run(ctx, getter(src, k), o) }
	}
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		return fetch.Together(ctx, library(fetch.Options{}, 1), library(fetch.Options{}, 2), getter(src, 3))
	}, fetch.Options{}))
	require.Equal(t, [][]int{{1, 2, 3}}, src.Batches(), "a plain call")

	src = newNumbers(fetch.SourceOptions{})
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		err := fetch.Together(ctx, library(fetch.Options{Eager: true}, 1), getter(src, 1), library(fetch.Options{On: suspend.Goroutines}, 2))
		require.Equal(t, 2, fetch.Of(ctx).Stats().Keys, "one cache")
		return err
	}, fetch.Options{}))
	require.PanicsWithValue(t, "fetch: Run in a session that already exists, with options for a new one", func() {
		_ = fetch.Run(t.Context(), library(fetch.Options{Trace: true}, 1), fetch.Options{})
	})
}

// Two Runs of one session are on two goroutines. A Get that joins a request of the other Run waits for the dispatch of that Run.
func TestRunsOfOneSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newNumbers(fetch.SourceOptions{})
		ctx, s := fetch.Open(t.Context(), fetch.Options{})
		defer s.Close()
		hold, runs := make(chan struct{}), new(sync.WaitGroup)
		runs.Go(func() {
			require.NoError(t, fetch.Run(ctx, func(ctx context.Context) error {
				return fetch.Together(ctx, getter(src, 1), func(context.Context) error { <-hold; return nil })
			}, fetch.Options{}))
		})
		synctest.Wait() // the first Run is blocked, with a pending request
		runs.Go(func() { require.NoError(t, fetch.Run(ctx, getter(src, 1), fetch.Options{})) })
		synctest.Wait()
		require.Empty(t, src.Batches())
		runs.Go(func() { require.NoError(t, fetch.Run(ctx, getter(src, 2), fetch.Options{})) })
		synctest.Wait()
		require.Equal(t, [][]int{{2}}, src.Batches())
		close(hold)
		runs.Wait()
		require.Equal(t, [][]int{{2}, {1}}, src.Batches())
		require.Equal(t, fetch.Stats{Rounds: 2, Batches: 2, Keys: 2, Gets: 3, Shared: 1}, s.Stats())
	})
}

// A Run ends without a dispatch, and another Run waits for one of its requests.
func TestRequestOutlivesItsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newNumbers(fetch.SourceOptions{})
		ctx, s := fetch.Open(t.Context(), fetch.Options{})
		defer s.Close()
		one, cancel := context.WithCancel(ctx)
		hold, runs := make(chan struct{}), new(sync.WaitGroup)
		runs.Go(func() {
			require.ErrorIs(t, fetch.Run(ctx, func(ctx context.Context) error {
				return fetch.Together(ctx, func(context.Context) error { _, err := src.Get(one, 1); return err },
					func(context.Context) error { <-hold; return nil })
			}, fetch.Options{}), context.Canceled)
		})
		synctest.Wait()
		runs.Go(func() { require.NoError(t, fetch.Run(ctx, getter(src, 1), fetch.Options{})) })
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(hold)
		runs.Wait()
		require.Equal(t, [][]int{{1}}, src.Batches())
	})
}

// An executor blocks natively in a task of a Run, and waits for goroutines that fetch. The Run's scheduler is blocked until they
// have their values.
func TestGetByAStranger(t *testing.T) {
	for _, sent := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			src := newNumbers(fetch.SourceOptions{})
			stranger := func(ctx context.Context) error {
				got := make(chan error)
				go func() { _, err := src.Get(ctx, 1); got <- err }()
				return <-got
			}
			require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
				if sent {
					release := src.Pause()
					return fetch.Together(ctx, getter(src, 1), func(ctx context.Context) error {
						require.NoError(t, suspend.Blocking(ctx, synctest.Wait))
						go func() { synctest.Wait(); release() }()
						return stranger(ctx) // the batch is open, and its values reach the goroutines outside first
					})
				}
				return fetch.Together(ctx, getter(src, 1), stranger) // pending, so the request moves to another driver
			}, fetch.Options{}))
			require.Equal(t, [][]int{{1}}, src.Batches())
		})
	}
}

func TestMemo(t *testing.T) {
	src, calls := newNumbers(fetch.SourceOptions{}), 0
	memo := fetch.NewMemo("memo", func(ctx context.Context, k int) (int, error) {
		calls++
		v, err := src.Get(ctx, k)
		if err == nil && v == 4 {
			panic("four")
		}
		return v + 1, err
	})
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		vs, err := fetch.Map(ctx, []int{1, 1, 1}, memo.Get)
		require.Equal(t, []int{3, 3, 3}, vs)
		require.NoError(t, err)
		for range 2 {
			_, err = memo.Get(ctx, 13)
			require.ErrorIs(t, err, errOdd)
			require.PanicsWithValue(t, "four", func() { _, _ = memo.Get(ctx, 2) })
		}
		return nil
	}, fetch.Options{}))
	require.Equal(t, 3, calls)
}

func TestMemoOfACancelledTask(t *testing.T) {
	src := newNumbers(fetch.SourceOptions{})
	calls := 0
	memo := fetch.NewMemo("memo", func(ctx context.Context, k int) (int, error) { calls++; return src.Get(ctx, k) })
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		one, cancel := context.WithCancel(ctx)
		return fetch.Together(ctx,
			func(context.Context) error {
				_, err := memo.Get(one, 1)
				require.ErrorIs(t, err, context.Canceled)
				return nil
			},
			func(ctx context.Context) error {
				v, err := memo.Get(ctx, 1)
				require.Equal(t, 2, v)
				return err
			},
			func(context.Context) error { cancel(); return nil })
	}, fetch.Options{}))
	require.Equal(t, 2, calls, "the caller that has waited runs it again")
}

func TestMemosThatWaitForEachOther(t *testing.T) {
	var a, b *fetch.Memo[int, int]
	a = fetch.NewMemo("a", func(ctx context.Context, k int) (int, error) { return b.Get(ctx, k) })
	b = fetch.NewMemo("b", func(ctx context.Context, k int) (int, error) {
		x, _, err := fetch.Two(ctx, func(ctx context.Context) (int, error) { return a.Get(ctx, k) }, func(context.Context) (int, error) { return 0, nil })
		return x, err
	})
	for _, on := range []suspend.Spawner{nil, suspend.Goroutines} {
		err := fetch.Run(t.Context(), func(ctx context.Context) error {
			return fetch.Together(ctx,
				func(ctx context.Context) error { _, err := a.Get(ctx, 1); return err },
				func(ctx context.Context) error { _, err := b.Get(ctx, 1); return err })
		}, fetch.Options{On: on})
		require.ErrorIs(t, err, lazy.ErrRecursive)
	}
}

// A Run inside a session waits for its own batches, even for one without waiters.
func TestARunWaitsForItsBatches(t *testing.T) {
	for range times(20, 100) {
		var begun promise.Promise[struct{}]
		var over atomic.Bool
		src := fetch.ByMap("slow", func(ctx context.Context, _ []int) (map[int]int, error) {
			_ = begun.Fill(struct{}{})
			<-ctx.Done()
			for range 100 {
				runtime.Gosched()
			}
			over.Store(true)
			return nil, ctx.Err()
		}, fetch.SourceOptions{})
		ctx, s := fetch.Open(t.Context(), fetch.Options{})
		require.NoError(t, fetch.Run(ctx, func(ctx context.Context) error {
			ctx, stop := cancel.New(ctx)
			return fetch.Together(ctx, func(ctx context.Context) error {
				_, err := src.Get(ctx, 1)
				require.ErrorIs(t, err, context.Canceled)
				return nil
			}, func(context.Context) error {
				_, err := begun.Await(context.Background())
				stop(nil)
				return err
			})
		}, fetch.Options{}))
		require.True(t, over.Load())
		s.Close()
	}
}

// A source that runs inline makes tasks runnable while the scheduler is idle. They run before an effect is sent.
func TestAnEffectWaitsForTheTasksOfAnInlineBatch(t *testing.T) {
	reads := 0
	src := fetch.ByMap("memory", func(_ context.Context, ks []int) (map[int]int, error) {
		reads++
		return map[int]int{ks[0]: ks[0]}, nil
	}, fetch.SourceOptions{Inline: true})
	effect := fetch.NewEffect("write", func(_ context.Context, b *fetch.Batch[int, int]) error {
		for _, k := range b.Keys() {
			b.Set(k, reads)
		}
		return nil
	}, fetch.SourceOptions{})
	for _, eager := range []bool{false, true} {
		reads = 0
		require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
			_, before, err := fetch.Two(ctx, func(ctx context.Context) (int, error) {
				for k := range 5 {
					if _, err := src.Get(ctx, k); err != nil {
						return 0, err
					}
				}
				return 0, nil
			}, func(ctx context.Context) (int, error) { return effect.Do(ctx, 1) })
			require.Equal(t, 5, before, "all reads come before the effect")
			return err
		}, fetch.Options{Eager: eager}))
	}
}

// All tasks that wait for a round become runnable before the first of them runs, even if their batch has ended on another
// goroutine and the scheduler is awake. A task that the first one starts runs after them.
func TestARoundIsHandedOutBeforeItsTasksGoOn(t *testing.T) {
	items := make([]int, 1000)
	for i := range items {
		items[i] = i
	}
	for range times(40, 100) {
		var begun promise.Promise[struct{}]
		var turns atomic.Int64
		src := fetch.BySlice("numbers", func(_ context.Context, ks []int) ([]int, error) {
			_ = begun.Fill(struct{}{})
			for turns.Load() < 3 {
				runtime.Gosched()
			}
			return ks, nil
		}, fetch.SourceOptions{})
		then := fetchtest.New("then", func(k int) (int, error) { return k, nil }, fetch.SourceOptions{})
		over := false
		awake := func(ctx context.Context) error {
			_, err := begun.Await(ctx)
			for !over {
				turns.Add(1)
				suspend.Yield()
			}
			return err
		}
		require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
			return fetch.Together(ctx, awake, func(ctx context.Context) error {
				_, err := fetch.Map(ctx, items, func(ctx context.Context, k int) ([]int, error) {
					if _, err := src.Get(ctx, k); err != nil {
						return nil, err
					}
					over = true
					return fetch.Map(ctx, []int{k, k + len(items)}, then.Get)
				})
				return err
			})
		}, fetch.Options{}))
		asked := then.Batches()[0]
		require.Len(t, asked, 2*len(items))
		for i, k := range asked {
			require.Equal(t, i, k, "all second items come after all first items")
		}
	}
}

// When the context of an item is cancelled, it calls the registered functions before cancel returns, like a context of package
// cancel.
func TestAnItemsContextTellsAtOnce(t *testing.T) {
	for range 100 {
		var told atomic.Bool
		require.ErrorIs(t, fetch.Run(t.Context(), func(ctx context.Context) error {
			return fetch.Together(ctx,
				func(context.Context) error { suspend.Yield(); return errOdd },
				func(ctx context.Context) error {
					defer cancel.AfterFunc(ctx, func() { told.Store(true) })()
					_, err := new(promise.Promise[int]).Await(ctx)
					require.True(t, told.Load())
					return err
				})
		}, fetch.Options{}), errOdd)
	}
}

// With Eager, an effect does not wait for an open read if all other tasks wait.
func TestAnEffectGoesBesideAnOpenRead(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	done := make(chan struct{})
	src := fetch.ByKey("waits", 1, func(_ context.Context, k int) (int, error) { <-done; return k, nil }, fetch.SourceOptions{})
	effect := fetch.NewEffect("ends", func(_ context.Context, b *fetch.Batch[int, int]) error {
		close(done)
		b.Set(2, 20)
		return nil
	}, fetch.SourceOptions{})
	for _, on := range []suspend.Spawner{nil, suspend.Goroutines} {
		done = make(chan struct{})
		require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
			a, b, err := fetch.Two(ctx, getOf(src, 1), func(ctx context.Context) (int, error) { return effect.Do(ctx, 2) })
			require.Equal(t, []int{1, 20}, []int{a, b})
			return err
		}, fetch.Options{Eager: true, On: on}))
	}
}

func getOf(src *fetch.Source[int, int], k int) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) { return src.Get(ctx, k) }
}

func TestEffects(t *testing.T) {
	src := newNumbers(fetch.SourceOptions{})
	var did [][]int
	var readsBefore []int
	effect := fetch.NewEffect("inc", func(_ context.Context, b *fetch.Batch[int, int]) error {
		did = append(did, b.Keys())
		readsBefore = append(readsBefore, len(src.Batches()))
		for i, k := range b.Keys() {
			if k < 0 {
				b.Fail(k, errOdd)
			} else {
				b.Set(k, 10*k+i)
			}
		}
		return nil
	}, fetch.SourceOptions{})
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		vs, err := fetch.Map(ctx, []int{5, 5, 0, 7}, func(ctx context.Context, k int) (int, error) {
			if k > 0 {
				return effect.Do(ctx, k)
			}
			for i := range 3 { // rounds of reads, all before the writes
				if _, err := src.Get(ctx, i); err != nil {
					return 0, err
				}
			}
			return effect.Do(ctx, 1)
		})
		require.Equal(t, []int{50, 51, 13, 72}, vs, "none is shared")
		require.NoError(t, err)
		_, err = effect.Do(ctx, -1)
		require.ErrorIs(t, err, errOdd)
		_, err = effect.Do(ctx, 5)
		return err
	}, fetch.Options{}))
	require.Equal(t, [][]int{{5, 5, 7, 1}, {-1}, {5}}, did)
	require.Equal(t, []int{3, 3, 3}, readsBefore)
}

func TestCancelledEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var did []int
		leave := make(chan struct{})
		effect := fetch.NewEffect("inc", func(ctx context.Context, b *fetch.Batch[int, int]) error {
			<-leave
			did = append(did, b.Keys()...)
			require.NoError(t, ctx.Err())
			return nil
		}, fetch.SourceOptions{})
		require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
			early, cancelEarly := context.WithCancel(ctx)
			late, cancelLate := context.WithCancel(ctx)
			do := func(c context.Context, k int) func(context.Context) error {
				return func(context.Context) error {
					_, err := effect.Do(c, k)
					require.ErrorIs(t, err, context.Canceled)
					return nil
				}
			}
			return fetch.Together(ctx, do(early, 1), do(late, 2), func(ctx context.Context) error {
				cancelEarly()
				return suspend.Blocking(ctx, func() {
					synctest.Wait()
					cancelLate()
					go func() { synctest.Wait(); close(leave) }() // the Run waits for this batch
				})
			})
		}, fetch.Options{}))
		require.Equal(t, []int{2}, did)
	})
}

func TestMaxBatchAndMaxOpen(t *testing.T) {
	var open, most int
	var mu sync.Mutex
	var log [][]int
	src := fetch.New("few", func(ctx context.Context, b *fetch.Batch[int, int]) error {
		mu.Lock()
		open++
		most = max(most, open)
		log = append(log, b.Keys())
		mu.Unlock()
		for range 10 {
			runtime.Gosched()
		}
		mu.Lock()
		open--
		mu.Unlock()
		for _, k := range b.Keys() {
			b.Set(k, k)
		}
		return nil
	}, fetch.SourceOptions{MaxBatch: 3, MaxOpen: 1})
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		_, err := src.All(ctx, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
		require.Equal(t, fetch.Stats{Rounds: 1, Batches: 4, Keys: 10, Gets: 10}, fetch.Of(ctx).Stats())
		return err
	}, fetch.Options{}))
	require.Equal(t, [][]int{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {10}}, log)
	require.Equal(t, 1, most)
}

// A queued batch is not sent after its last waiter was cancelled.
func TestQueuedBatchIsDropped(t *testing.T) {
	src := newNumbers(fetch.SourceOptions{MaxBatch: 1, MaxOpen: 1})
	stats := cancelOne(t, src, true, []int{2}, []int{1}, func(ctx context.Context) {})
	_ = stats
	// Now 2 is sent first, so 1 waits in the queue.
	synctest.Test(t, func(t *testing.T) {
		src := newNumbers(fetch.SourceOptions{MaxBatch: 1, MaxOpen: 1})
		require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
			one, cancel := context.WithCancel(ctx)
			release := src.Pause()
			return fetch.Together(ctx, getter(src, 1), func(context.Context) error {
				_, err := src.Get(one, 2)
				require.ErrorIs(t, err, context.Canceled)
				return nil
			}, func(ctx context.Context) error {
				return suspend.Blocking(ctx, func() { synctest.Wait(); cancel(); synctest.Wait(); release() })
			})
		}, fetch.Options{}))
		require.Equal(t, [][]int{{1}}, src.Batches())
	})
}

// A batch without waiters has ended when its Run returns.
func TestNothingOutlivesRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := false
		slow := fetch.New("slow", func(ctx context.Context, b *fetch.Batch[int, int]) error {
			<-ctx.Done()
			for range 100 {
				runtime.Gosched()
			}
			ended = true
			return ctx.Err()
		}, fetch.SourceOptions{})
		require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
			one, cancel := context.WithCancel(ctx)
			go func() { synctest.Wait(); cancel() }()
			_, err := slow.Get(one, 1)
			require.ErrorIs(t, err, context.Canceled)
			return nil
		}, fetch.Options{}))
		require.True(t, ended)
	})
}

func TestAfterTheEnd(t *testing.T) {
	src := newNumbers(fetch.SourceOptions{})
	memo := fetch.NewMemo("memo", src.Get)
	effect := fetch.NewEffect("effect", func(context.Context, *fetch.Batch[int, int]) error { return nil }, fetch.SourceOptions{})
	var leaked context.Context
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error { leaked = ctx; return getter(src, 1)(ctx) }, fetch.Options{}))
	for _, k := range []int{1, 2} {
		_, err := src.Get(leaked, k)
		require.ErrorIs(t, err, suspend.ErrEnded)
		_, err = src.All(leaked, []int{k})
		require.ErrorIs(t, err, suspend.ErrEnded)
		_, err = memo.Get(leaked, k)
		require.ErrorIs(t, err, suspend.ErrEnded)
		_, err = effect.Do(leaked, k)
		require.ErrorIs(t, err, suspend.ErrEnded)
		require.False(t, src.Prime(leaked, k, 1))
	}
	require.ErrorIs(t, fetch.Run(leaked, getter(src, 1), fetch.Options{}), suspend.ErrEnded)
	_, err := src.Get(t.Context(), 1)
	require.ErrorIs(t, err, fetch.ErrNoSession)
	_, err = fetch.Map(t.Context(), []int{1}, src.Get)
	require.ErrorIs(t, err, fetch.ErrNoSession)
}

func TestCloseEndsWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newNumbers(fetch.SourceOptions{})
		src.Pause()
		ctx, s := fetch.Open(t.Context(), fetch.Options{})
		var errs [2]error
		var all sync.WaitGroup
		all.Go(func() { _, errs[0] = src.Get(ctx, 1) })
		synctest.Wait()
		all.Go(func() { _, errs[1] = src.Get(ctx, 2) }) // pending, because a round is open
		synctest.Wait()
		s.Close()
		all.Wait()
		require.ErrorIs(t, errs[0], suspend.ErrEnded)
		require.ErrorIs(t, errs[1], suspend.ErrEnded)
		s.Close()
	})
}

func TestTwoSourcesOfOneName(t *testing.T) {
	a, b := newNumbers(fetch.SourceOptions{}), newNumbers(fetch.SourceOptions{})
	require.PanicsWithValue(t, "fetch: two sources with the same name in a session: numbers", func() {
		_ = fetch.Run(t.Context(), func(ctx context.Context) error { return fetch.Together(ctx, getter(a, 1), getter(b, 1)) }, fetch.Options{})
	})
}

func TestKeyThatCannotBeHashed(t *testing.T) {
	src := fetch.ByMap("any", func(context.Context, []any) (map[any]int, error) { return nil, nil }, fetch.SourceOptions{})
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		require.Panics(t, func() { _, _ = src.Get(ctx, []int{1}) })
		_, ok, err := src.Find(ctx, 1) // no lock is held
		require.False(t, ok)
		return err
	}, fetch.Options{}))
}

func TestTransientErrors(t *testing.T) {
	calls := 0
	src := fetch.New("flaky", func(_ context.Context, b *fetch.Batch[int, int]) error {
		calls++
		if calls == 1 {
			b.Fail(1, fetch.Transient(errOdd))
			return context.Canceled // an error of the source, not of its context
		}
		for _, k := range b.Keys() {
			b.Set(k, calls)
		}
		return nil
	}, fetch.SourceOptions{})
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		_, err := src.All(ctx, []int{1, 2})
		require.EqualError(t, err, "flaky 1: odd")
		vs, err := src.All(ctx, []int{1, 2})
		require.Equal(t, []int{2, 2}, vs, "neither is remembered")
		return err
	}, fetch.Options{}))
	require.Nil(t, fetch.Transient(nil))
}

func TestPrimeAndForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newNumbers(fetch.SourceOptions{})
		require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
			require.True(t, src.Prime(ctx, 2, 22))
			require.False(t, src.Prime(ctx, 2, 23))
			require.NoError(t, fetch.Together(ctx, getter(src, 1), func(ctx context.Context) error {
				require.False(t, src.Prime(ctx, 1, 11), "it was asked for")
				src.Forget(ctx, 1) // the request was not sent yet, and must not be sent twice
				return getter(src, 1)(ctx)
			}))
			vs, err := src.All(ctx, []int{2, 3})
			require.Equal(t, []int{22, 6}, vs)
			require.NoError(t, err)
			src.Forget(ctx, 2)
			v, err := src.Get(ctx, 2)
			require.Equal(t, 4, v)
			require.Equal(t, [][]int{{1}, {3}, {2}}, src.Batches())
			return err
		}, fetch.Options{}))
	})
}

// Waiters get the old value of a forgotten key. The next Get sends the key again.
func TestForgetOfAnOpenRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newNumbers(fetch.SourceOptions{})
		release := src.Pause()
		ctx, s := fetch.Open(t.Context(), fetch.Options{Eager: true})
		defer s.Close()
		var all sync.WaitGroup
		all.Go(func() { require.NoError(t, getter(src, 1)(ctx)) })
		synctest.Wait()
		src.Forget(ctx, 1)
		all.Go(func() { require.NoError(t, getter(src, 1)(ctx)) })
		synctest.Wait()
		release()
		all.Wait()
		require.Equal(t, [][]int{{1}, {1}}, src.Batches())
	})
}

func TestThree(t *testing.T) {
	src := newNumbers(fetch.SourceOptions{})
	get := func(k int) func(ctx context.Context) (int, error) {
		return func(ctx context.Context) (int, error) { return src.Get(ctx, k) }
	}
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		a, b, c, err := fetch.Three(ctx, get(5), get(6), get(7))
		require.Equal(t, []int{10, 12, 14}, []int{a, b, c})
		fetchtest.AssertRounds(t, fetch.Of(ctx), 1)
		return err
	}, fetch.Options{}))
}

func TestImmediate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hasty, round := newNumbers(fetch.SourceOptions{Immediate: true}), fetchtest.New("round", func(k int) (int, error) { return k, nil }, fetch.SourceOptions{})
		require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
			release := round.Pause()
			return fetch.Together(ctx,
				func(ctx context.Context) error { _, err := round.Get(ctx, 1); return err },
				func(ctx context.Context) error {
					require.NoError(t, suspend.Blocking(ctx, synctest.Wait))
					_, err := hasty.All(ctx, []int{1, 2}) // while a round is open
					release()
					require.ElementsMatch(t, [][]int{{1}, {2}}, hasty.Batches())
					return err
				})
		}, fetch.Options{}))
	})
}

// A source of a single value is loaded at once, by the first Get.
func TestASourceOfOneValue(t *testing.T) {
	calls := 0
	now := fetch.New("now", func(ctx context.Context, b *fetch.Batch[struct{}, []int]) error {
		calls++
		b.Set(struct{}{}, []int{calls})
		return suspend.Sleep(ctx, 0)
	}, fetch.SourceOptions{Immediate: true, Inline: true})
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		vs, err := fetch.Map(ctx, make([]struct{}, 3), now.Get)
		require.Equal(t, [][]int{{1}, {1}, {1}}, vs)
		require.Equal(t, fetch.Stats{Batches: 1, Keys: 1, Gets: 3, Shared: 2}, fetch.Of(ctx).Stats())
		return err
	}, fetch.Options{}))
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		vs, err := now.All(ctx, make([]struct{}, 2))
		require.Equal(t, [][]int{{2}, {2}}, vs)
		return err
	}, fetch.Options{}))
}

func TestShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, cancelled := newCounted(fetch.SourceOptions{MaxBatch: 4})
		src := fetch.Shared(inner.Source, 1)
		release := inner.Pause()
		var all sync.WaitGroup
		ask := func(ctx context.Context, ks ...int) {
			all.Go(func() {
				err := fetch.Run(ctx, func(ctx context.Context) error {
					vs, err := src.All(ctx, ks)
					for i, v := range vs {
						require.Equal(t, 2*ks[i], v)
					}
					return err
				}, fetch.Options{})
				if ctx.Err() == nil {
					require.NoError(t, err)
				}
			})
			synctest.Wait()
		}
		ask(t.Context(), 1, 2)
		ask(t.Context(), 2, 3) // the Gets that come while it is open share one batch, and 2 is sent again
		ask(t.Context(), 3, 4)
		gone, cancel := context.WithCancel(t.Context())
		ask(gone, 5, 6, 7)
		cancel()
		release()
		all.Wait()
		require.Equal(t, [][]int{{1, 2}, {2, 3, 4, 5}, {6, 7}}, inner.Batches())
		src = fetch.Shared(inner.Source, 1)
		inner.Pause()
		gone, cancel = context.WithCancel(t.Context())
		ask(gone, 8)
		cancel()
		all.Wait()
		synctest.Wait()
		require.EqualValues(t, 1, cancelled.Load(), "nobody waits for it any more")
		require.Equal(t, fmt.Sprint([]int{8}), fmt.Sprint(inner.Batches()[3]))
	})
}

func TestOnBatch(t *testing.T) {
	type key struct{}
	var infos []fetch.BatchInfo
	var errs []error
	down := errors.New("down")
	src := fetch.New("traced", func(ctx context.Context, b *fetch.Batch[int, int]) error {
		require.Equal(t, "span", ctx.Value(key{}))
		b.Set(1, 1)
		return down
	}, fetch.SourceOptions{})
	o := fetch.Options{OnBatch: func(ctx context.Context, b fetch.BatchInfo) (context.Context, func(error)) {
		infos = append(infos, b)
		return context.WithValue(ctx, key{}, "span"), func(err error) { errs = append(errs, err) }
	}}
	require.ErrorIs(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		_, err := src.Get(ctx, 1)
		return err
	}, o), down)
	require.Equal(t, []fetch.BatchInfo{{Source: "traced", Keys: 1, Round: 1}}, infos)
	require.Equal(t, []error{down}, errs)
}

// The context of a batch has the values of the session, not those of a caller.
func TestBatchBelongsToNobody(t *testing.T) {
	type key struct{}
	src := fetch.ByMap("values", func(ctx context.Context, _ []int) (map[int]int, error) {
		return map[int]int{1: ctx.Value(key{}).(int)}, nil
	}, fetch.SourceOptions{})
	require.NoError(t, fetch.Run(context.WithValue(t.Context(), key{}, 10), func(ctx context.Context) error {
		v, err := src.Get(context.WithValue(ctx, key{}, 20), 1)
		require.Equal(t, 10, v)
		return err
	}, fetch.Options{}))
}
