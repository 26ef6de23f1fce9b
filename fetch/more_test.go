package fetch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/fetch"
	"github.com/braidgo/braid/suspend"
)

// The trace shows batches that still run, because it is needed most when a request hangs.
func TestABatchThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newNumbers(fetch.SourceOptions{})
		ctx, s := fetch.Open(t.Context(), fetch.Options{Trace: true})
		_, err := src.Get(ctx, 1)
		require.NoError(t, err)
		require.Zero(t, s.Stats().Open)
		release := src.Pause()
		var all sync.WaitGroup
		all.Go(func() { _, _ = src.Get(ctx, 2) })
		time.Sleep(time.Second)
		require.Equal(t, 1, s.Stats().Open)
		trace := s.Trace()
		require.Len(t, trace.Batches, 2)
		hangs := trace.Batches[1]
		require.True(t, hangs.Open)
		require.False(t, trace.Batches[0].Open)
		require.GreaterOrEqual(t, hangs.End-hangs.Start, time.Second-10*time.Millisecond)
		require.Contains(t, hangs.Lines[0], "more_test.go:")
		require.Contains(t, trace.String(), "  (open)\n")
		release()
		all.Wait()
		require.Zero(t, s.Stats().Open)
		require.NotContains(t, s.Trace().String(), "(open)")
		s.Close()
	})
}

func TestAllSettled(t *testing.T) {
	src := newNumbers(fetch.SourceOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, fetch.Run(ctx, func(ctx context.Context) error {
		vs, errs := src.AllSettled(ctx, []int{1, 13, 2, -1})
		require.Equal(t, []int{2, 0, 4, 0}, vs)
		require.NoError(t, errors.Join(errs[0], errs[2]))
		require.EqualError(t, errs[1], "numbers 13: odd")
		require.ErrorIs(t, errs[3], fetch.ErrNotFound)
		vs, errs = src.AllSettled(ctx, []int{1, 2})
		require.Equal(t, []int{2, 4}, vs)
		require.Nil(t, errs)
		cancel()
		_, errs = src.AllSettled(ctx, []int{1, 2})
		require.ErrorIs(t, errs[0], context.Canceled)
		require.ErrorIs(t, errs[1], context.Canceled)
		return nil
	}, fetch.Options{}))
	require.Equal(t, [][]int{{1, 13, 2, -1}}, src.Batches(), "one batch")
}

// The second Get must not see the state of the first.
func TestFresh(t *testing.T) {
	for _, o := range []fetch.SourceOptions{{Fresh: true}, {Immediate: true, Inline: true, Fresh: true}, {Immediate: true, Fresh: true}} {
		n := 0
		src := fetch.New("fresh", func(_ context.Context, b *fetch.Batch[int, int]) error { n++; b.Set(1, n); return nil }, o)
		require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
			for i := range 3 {
				v, err := src.Get(ctx, 1)
				require.NoError(t, err)
				require.Equal(t, i+1, v)
			}
			require.False(t, src.Prime(ctx, 1, 100))
			a, b, err := fetch.Two(ctx, func(ctx context.Context) (int, error) { return src.Get(ctx, 1) },
				func(ctx context.Context) (int, error) { return src.Get(ctx, 1) })
			if !o.Immediate {
				require.Equal(t, [2]int{4, 4}, [2]int{a, b}, "Gets that wait at the same time share it")
			}
			r, _ := fetch.Of(ctx).Record()
			require.Empty(t, r.Sources["fresh"])
			return err
		}, fetch.Options{}))
	}
}

// Close waits for the batches of a Shared source, so that resources that they use can be closed afterwards.
func TestCloseOfAShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newNumbers(fetch.SourceOptions{})
		shared := fetch.Shared(src.Source, 1)
		var all sync.WaitGroup
		errs := make([]error, 3)
		var returned atomic.Bool
		slow := fetch.Shared(fetch.New("slow", func(ctx context.Context, b *fetch.Batch[int, int]) error {
			<-ctx.Done()
			time.Sleep(time.Second) // takes time to clean up
			returned.Store(true)
			return ctx.Err()
		}, fetch.SourceOptions{}), 1)
		for i := range errs {
			all.Go(func() {
				errs[i] = fetch.Run(t.Context(), func(ctx context.Context) error { _, err := slow.Get(ctx, i); return err }, fetch.Options{})
			})
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, slow.Shutdown(ctx), context.Canceled)
		require.False(t, returned.Load(), "Shutdown cancels the batch, and does not wait")
		require.NoError(t, slow.Close())
		require.True(t, returned.Load())
		require.NoError(t, slow.Shutdown(ctx), "nothing is left")
		all.Wait()
		for _, err := range errs {
			require.Error(t, err)
		}
		require.ErrorIs(t, fetch.Run(t.Context(), func(ctx context.Context) error { _, err := slow.Get(ctx, 9); return err }, fetch.Options{}), suspend.ErrEnded)
		require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error { _, err := shared.Get(ctx, 1); return err }, fetch.Options{}))
		require.NoError(t, shared.Close(), "nothing is open")
		require.NoError(t, errors.Join(src.Close(), src.Shutdown(t.Context())), "it is not shared")
	})
}

// A Shutdown lets the batches finish, even one that is still queued. A Close cancels them. Both wait.
func TestShutdownOfAShared(t *testing.T) {
	for end, want := range map[string]error{"Shutdown": nil, "Close": context.Canceled} {
		synctest.Test(t, func(t *testing.T) {
			src := fetch.Shared(fetch.ByKey("slow", 1, func(ctx context.Context, k int) (int, error) {
				select {
				case <-time.After(time.Second):
					return k, nil
				case <-ctx.Done():
					return 0, ctx.Err()
				}
			}, fetch.SourceOptions{}), 1)
			errs := make([]error, 2)
			var all sync.WaitGroup
			for i := range errs {
				all.Go(func() {
					errs[i] = fetch.Run(t.Context(), func(ctx context.Context) error { _, err := src.Get(ctx, i); return err }, fetch.Options{})
				})
				synctest.Wait()
			}
			start := time.Now()
			if end == "Close" {
				require.NoError(t, src.Close())
				require.Zero(t, time.Since(start))
			} else {
				require.NoError(t, src.Shutdown(t.Context()))
				require.Equal(t, 2*time.Second, time.Since(start), "one batch at a time")
			}
			all.Wait()
			require.ErrorIs(t, errs[0], want)
			if want == nil {
				require.NoError(t, errs[1])
			} else {
				require.Error(t, errs[1])
			}
			require.ErrorIs(t, fetch.Run(t.Context(), func(ctx context.Context) error { _, err := src.Get(ctx, 9); return err }, fetch.Options{}), suspend.ErrEnded)
		})
	}
}

type userByID struct {
	fetch.Returns[string]
	User int
}

type postsOf struct {
	fetch.Returns[[]int]
	Author int
}

// Requests of several types to one backend share one call.
func TestOneCallForAllRequestsOfABackend(t *testing.T) {
	var calls [][]any
	backend := fetch.New("backend", func(_ context.Context, b *fetch.Batch[any, any]) error {
		calls = append(calls, b.Keys())
		for _, k := range b.Keys() {
			switch q := k.(type) {
			case userByID:
				b.Set(k, fmt.Sprint("user ", q.User))
			case postsOf:
				if q.Author == 0 {
					b.Set(k, "no posts")
				} else {
					b.Set(k, []int{q.Author, 2 * q.Author})
				}
			}
		}
		return nil
	}, fetch.SourceOptions{})
	program := func(ctx context.Context) error {
		u, ps, err := fetch.Two(ctx,
			func(ctx context.Context) (string, error) { return fetch.Request(ctx, backend, userByID{User: 7}) },
			func(ctx context.Context) ([]int, error) { return fetch.Request(ctx, backend, postsOf{Author: 7}) })
		require.Equal(t, "user 7", u)
		require.Equal(t, []int{7, 14}, ps)
		return err
	}
	var kept []byte
	require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
		require.NoError(t, program(ctx))
		require.Equal(t, [][]any{{userByID{User: 7}, postsOf{Author: 7}}}, calls)
		r, err := fetch.Of(ctx).Record()
		require.NoError(t, err)
		kept, err = json.Marshal(r)
		require.NoError(t, err)
		_, err = fetch.Request(ctx, backend, postsOf{})
		require.ErrorContains(t, err, "the value is a string, not a []int")
		return nil
	}, fetch.Options{}))
	var r fetch.Recording
	require.NoError(t, json.Unmarshal(kept, &r))
	require.NoError(t, fetch.Run(t.Context(), program, fetch.Options{Replay: &r}))
	require.Len(t, calls, 2)
	_, err := fetch.Request(t.Context(), backend, userByID{})
	require.ErrorIs(t, err, fetch.ErrNoSession)
}

//go:noinline
func load(ctx context.Context, src *numbers, k int) int {
	v, err := src.Get(ctx, k) // would be in the trace if it were not skipped
	if err != nil {
		return 0
	}
	return v
}

// The lines in a trace are those of the helper's callers, not of the helper.
func TestLinesOfAHelper(t *testing.T) {
	lines := func(o fetch.Options) (lines []string) {
		o.Trace = true
		src := newNumbers(fetch.SourceOptions{})
		require.NoError(t, fetch.Run(t.Context(), func(ctx context.Context) error {
			err := fetch.Together(ctx,
				func(ctx context.Context) error { load(ctx, src, 1); return nil },
				func(ctx context.Context) error {
					load(ctx, src, 2)
					return nil
				})
			lines = fetch.Of(ctx).Trace().Batches[0].Lines
			return err
		}, o))
		return lines
	}
	require.Len(t, lines(fetch.Options{}), 1)
	both := lines(fetch.Options{Skip: func(function string) bool { return strings.HasSuffix(function, "fetch_test.load") }})
	require.Len(t, both, 2)
	require.NotContains(t, both, lines(fetch.Options{})[0])
}
