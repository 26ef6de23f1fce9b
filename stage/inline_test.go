package stage_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/stage"
)

// Retries do not exceed the bound: a Do that runs on its caller needs room, too.
func TestInlineKeepsTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stage.New("s", func(_ context.Context, n int) (int, error) {
			if n == 0 {
				return 0, errOops
			}
			return n, nil
		}, stage.Options{Width: 1, Queue: stage.NoQueue, Reject: true, Retry: forever})
		require.NoError(t, s.Submit(bg, 0))
		synctest.Wait()
		require.Equal(t, 1, s.Stats().Delayed)
		_, err := s.Do(bg, 1) // one task is inside, and Queue + Width is 1
		done, cancel := context.WithCancel(bg)
		cancel()
		_ = s.Shutdown(done)
		require.ErrorIs(t, err, stage.ErrFull, "accepted above Queue + Width")
	})
}

// A Do in a handler of the same stage cannot wait for itself, even if it is tried again.
func TestLentDoWithARetry(t *testing.T) {
	var s *stage.Stage[int, int]
	var tries atomic.Int32
	s = stage.New("s", func(ctx context.Context, n int) (int, error) {
		if n > 0 {
			return s.Do(ctx, n-1)
		}
		if tries.Add(1) == 1 {
			return 0, errOops
		}
		return 7, nil
	}, stage.Options{Width: 1, Queue: 8, Retry: func(_ error, try int) (time.Duration, bool) { return 0, try < 3 }})
	require.True(t, returns(func() {
		v, err := s.Do(bg, 1)
		if v != 7 || err != nil {
			t.Errorf("%v, %v", v, err)
		}
	}), "a Do in its own slot waits for itself: %+v", brief(s.Stats()))
}

// The same rule holds in a stage of batches.
func TestLentDoInABatch(t *testing.T) {
	var s *stage.Stage[int, int]
	s = stage.NewBatch("s", func(ctx context.Context, in, out []int) (err error) {
		if in[0] > 0 {
			out[0], err = s.Do(ctx, in[0]-1)
		}
		return err
	}, stage.Options{Width: 1, Queue: 8})
	require.True(t, returns(func() { _, _ = s.Do(bg, 1) }), "a Do in its own slot waits for itself: %+v", brief(s.Stats()))
}

// An earlier rejection does not change a nested Do.
func TestLentDoAfterARejection(t *testing.T) {
	for name, rejected := range map[string]bool{"before": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			let, held := make(chan struct{}), make(chan struct{})
			var s *stage.Stage[int, int]
			s = stage.New("factorial", func(ctx context.Context, n int) (int, error) {
				if n == -1 {
					close(held)
					<-let
				}
				if n <= 0 {
					return 1, nil
				}
				v, err := s.Do(ctx, n-1)
				return n * v, err
			}, stage.Options{Width: 1, Queue: stage.NoQueue, Reject: true})
			if rejected {
				require.NoError(t, s.Submit(bg, -1))
				<-held
				require.ErrorIs(t, s.Submit(bg, 1), stage.ErrFull)
				close(let)
				for s.Stats().Busy > 0 {
					runtime.Gosched()
				}
			}
			v, err := s.Do(bg, 5)
			require.NoError(t, err)
			require.Equal(t, 120, v)
			require.NoError(t, s.Shutdown(bg))
		})
	}
}

// The slot is returned even if OnFail ends the goroutine, like require, or panics.
func TestInlineOnFailDoesNotReturn(t *testing.T) {
	for name, end := range map[string]func(){"Goexit": runtime.Goexit, "panic": func() { panic("from OnFail") }} {
		t.Run(name, func(t *testing.T) {
			s := stage.New("s", func(context.Context, int) (int, error) { return 0, errOops },
				stage.Options{OnPanic: func(any, []byte) {}}).OnFail(func(context.Context, int, error) { end() })
			require.True(t, returns(func() {
				defer func() { _ = recover() }()
				_, _ = s.Do(bg, 1)
			}))
			st := s.Stats()
			require.Zero(t, st.Busy, "in progress for ever: %s", brief(st))
			require.Zero(t, st.Handlers, "the slot is lost")
		})
	}
}

// A caller that waits is resumed when an inline Do makes room.
func TestTheWaitOfAnOutsider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hold(stage.Options{Width: 1, Queue: stage.NoQueue})
		go func() { _, _ = h.s.Do(bg, 1) }()
		synctest.Wait()
		go func() { _ = h.s.Submit(bg, 2) }()
		synctest.Wait()
		time.Sleep(time.Second)
		h.let <- struct{}{}
		synctest.Wait()
		require.Equal(t, 1, h.s.Stats().Busy)
		require.Zero(t, h.s.Stats().Wait.Sum)
		h.close(t)
	})
}

// The time of each Do on its caller is measured: here fifteen Dos of a second each follow a short one.
func TestTheServiceTimeOfInlineTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stage.New("s", func(_ context.Context, ns int) (int, error) { time.Sleep(time.Duration(ns)); return 0, nil }, stage.Options{})
		var want time.Duration
		for i := range 16 {
			d := time.Duration(0)
			if i > 0 {
				d = time.Second
			}
			want += d
			_, _ = s.Do(bg, int(d))
		}
		st := s.Stats()
		require.NoError(t, s.Shutdown(bg))
		require.InEpsilon(t, want.Seconds()+1, st.Service.Sum.Seconds()+1, 0.25, "the sum of service times")
	})
}

// A Do of a second that follows short ones counts once.
func TestOneSlowInlineTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stage.New("s", func(_ context.Context, ns int) (int, error) { time.Sleep(time.Duration(ns)); return 0, nil }, stage.Options{})
		for range 16 {
			_, _ = s.Do(bg, 0)
		}
		_, _ = s.Do(bg, int(time.Second))
		st := s.Stats()
		require.NoError(t, s.Shutdown(bg))
		require.InEpsilon(t, 1, st.Service.Sum.Seconds(), 0.25, "the sum of service times, one of a second among 17")
	})
}

// When its context ends, a Do returns at once, and the handler continues. A Do whose handler runs on the caller returns after the
// handler.
func TestACancelledDoReturns(t *testing.T) {
	for name, inline := range map[string]bool{"inline": true, "queued": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stage.New("s", func(context.Context, int) (int, error) { time.Sleep(time.Hour); return 0, nil }, stage.Options{})
				begun, want := time.Duration(0), time.Hour
				if !inline { // begins when the first one is over
					require.NoError(t, s.Submit(bg, 0))
					begun, want = time.Hour, time.Hour+time.Second
				}
				ctx, cancel := context.WithTimeout(bg, begun+time.Second)
				defer cancel()
				start := time.Now()
				_, err := s.Do(ctx, 1)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.Equal(t, want, time.Since(start))
				require.NoError(t, s.Shutdown(bg))
			})
		})
	}
}

func forever(error, int) (time.Duration, bool) { return time.Hour, true }
