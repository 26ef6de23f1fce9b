package stage_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/suspend"
)

// OnFail is called once, even if it does not return.
func TestOnFailOnce(t *testing.T) {
	var calls atomic.Int32
	s := stage.New("s", func(context.Context, int) (int, error) { return 0, errOops }, stage.Options{}).
		OnFail(func(context.Context, int, error) { calls.Add(1); runtime.Goexit() })
	f, err := s.Begin(bg, 1)
	require.NoError(t, err)
	_, err = f.Await(bg)
	require.Error(t, err)
	require.NoError(t, s.Shutdown(bg))
	require.EqualValues(t, 1, calls.Load(), "calls of OnFail for one task")
}

// No task is lost if the OnFail of another task has ended the worker.
func TestADebtLosesTheNextTask(t *testing.T) {
	p := stage.NewPool("p", 1, nil)
	begun := make(chan struct{})
	var dead atomic.Int32
	a := stage.New("a", func(ctx context.Context, _ int) (int, error) {
		close(begun)
		<-ctx.Done()
		return 0, errOops
	}, stage.Options{Pool: p, Retry: forever}).OnFail(func(context.Context, int, error) { dead.Add(1); runtime.Goexit() })
	b := stage.New("b", double, stage.Options{Pool: p})
	require.NoError(t, a.Submit(bg, 1))
	<-begun
	f, err := b.Begin(bg, 21) // waits for the only permit
	require.NoError(t, err)
	done, cancel := context.WithCancel(bg)
	cancel()
	require.Error(t, a.Shutdown(done)) // cuts the stage off, so that the retry of a's task is dropped later
	require.True(t, returns(func() { _, _ = f.Await(bg) }), "the task of b is lost: b %s; pool %+v", brief(b.Stats()), p.Stats())
}

// A Do gets its result although OnFail does not return.
func TestACutRetryIsAnswered(t *testing.T) {
	begun, let := make(chan struct{}), make(chan struct{})
	s := stage.New("s", func(ctx context.Context, _ int) (int, error) {
		close(begun)
		<-let
		return 0, errOops
	}, stage.Options{Retry: forever}).OnFail(func(context.Context, int, error) { runtime.Goexit() })
	f, err := s.Begin(bg, 1)
	require.NoError(t, err)
	<-begun
	done, cancel := context.WithCancel(bg)
	cancel()
	require.Error(t, s.Shutdown(done))
	close(let)
	require.True(t, returns(func() { _, _ = f.Await(bg) }), "no answer: %s", brief(s.Stats()))
}

// The other tasks get their results although OnFail panics in Close and the caller recovers, like an HTTP server.
func TestACutWhoseOnFailPanics(t *testing.T) {
	h := hold(stage.Options{Width: 1, Queue: 5})
	h.s.OnFail(func(_ context.Context, n int, _ error) {
		if n == 1 {
			panic("from OnFail")
		}
	})
	require.NoError(t, h.s.Submit(bg, 0))
	<-h.begun
	require.NoError(t, h.s.Submit(bg, 1))
	f, err := h.s.Begin(bg, 2)
	require.NoError(t, err)
	done, cancel := context.WithCancel(bg)
	cancel()
	func() {
		defer func() { _ = recover() }()
		_ = h.s.Shutdown(done)
	}()
	require.True(t, returns(func() { _, _ = f.Await(bg) }), "no answer: %s", brief(h.s.Stats()))
	close(h.let)
}

// Shutdown returns nil after OnFail has returned, even for tasks that another Shutdown has cut off.
func TestOnFailBeforeCloseReturns(t *testing.T) {
	for name, c := range map[string]struct{ inline, queued bool }{"a queued task": {false, true}, "a retry": {false, false}, "a retry of an inline Do": {true, false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				let := make(chan struct{})
				var reported atomic.Int32
				s := stage.New("s", func(_ context.Context, n int) (int, error) { <-let; return 0, errOops },
					stage.Options{Queue: 4, Retry: func(error, int) (time.Duration, bool) { return time.Hour, !c.queued }}).
					OnFail(func(context.Context, int, error) { time.Sleep(time.Second); reported.Add(1) })
				want := int32(1)
				switch {
				case c.inline:
					go func() { _, _ = s.Do(bg, 1) }()
				case c.queued:
					want = 2
					require.NoError(t, s.Submit(bg, 1))
					require.NoError(t, s.Submit(bg, 2))
				default:
					require.NoError(t, s.Submit(bg, 1))
				}
				synctest.Wait()
				done, cancel := context.WithCancel(bg)
				cancel()
				if c.queued {
					close(let)
					synctest.Wait() // in the first call of OnFail, for a second
					time.Sleep(time.Second / 2)
					go func() { _ = s.Shutdown(done) }() // in the second call of OnFail, for another second
					synctest.Wait()
				} else {
					_ = s.Shutdown(done)
					close(let)
				}
				err := s.Shutdown(bg)
				got := reported.Load()
				time.Sleep(5 * time.Second)
				require.NoError(t, err)
				require.Equal(t, want, got, "Close has returned nil, and OnFail runs")
			})
		})
	}
}

// The time of OnFail counts as waiting time of the next task, not as service time.
func TestTheTimeOfOnFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stage.New("s", func(_ context.Context, n int) (int, error) {
			if n == 0 {
				return 0, errOops
			}
			return n, nil
		}, stage.Options{Width: 1, Queue: 4}).OnFail(func(context.Context, int, error) { time.Sleep(time.Second) })
		require.NoError(t, s.Submit(bg, 0))
		require.NoError(t, s.Submit(bg, 1))
		require.NoError(t, s.Shutdown(bg))
		st := s.Stats()
		require.Equal(t, time.Second, st.Wait.Sum, "the second task waited a second for the OnFail of the first")
		require.Zero(t, st.Service.Sum, "no handler took any time")
	})
}

// The clock runs while late tasks are reported, and Delay takes this into account.
func TestDelayWithASlowOnFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const delay = 5 * time.Millisecond
		accepted := map[int]time.Time{}
		var mu sync.Mutex
		var worst time.Duration
		over, begun := 0, 0
		s := stage.New("s", func(_ context.Context, n int) (int, error) {
			mu.Lock()
			waited := time.Since(accepted[n])
			mu.Unlock()
			if worst = max(worst, waited); waited > 4*delay {
				over++
			}
			begun++
			time.Sleep(10 * time.Millisecond)
			return 0, nil
		}, stage.Options{Width: 1, Queue: 400, Delay: delay}).OnFail(func(context.Context, int, error) { time.Sleep(9 * time.Millisecond) })
		for i := range 1000 {
			mu.Lock()
			accepted[i] = time.Now()
			mu.Unlock()
			_ = s.TrySubmit(bg, i)
			time.Sleep(5 * time.Millisecond)
		}
		st := s.Stats()
		require.NoError(t, s.Shutdown(bg))
		t.Logf("%d begun, %d of them after more than %v, the worst %v; the stage says p50 %v p99 %v; late %d, waiting %d", begun, over, 4*delay, worst, st.Wait.Quantile(0.5), st.Wait.Quantile(0.99), st.Late, st.Waiting)
		require.InEpsilon(t, worst.Seconds(), max(st.Wait.Quantile(1).Seconds(), 1e-9), 0.3, "the longest wait that the stage has seen")
	})
}

// A task that its own caller has cancelled is not reported.
func TestTheCancelledAreNotReported(t *testing.T) {
	t.Run("cut", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := hold(stage.Options{Width: 1, Queue: 4})
			var dead []int
			h.s.OnFail(func(_ context.Context, n int, _ error) { dead = append(dead, n) })
			ctx, cancel := context.WithCancel(bg)
			f, err := h.s.Begin(bg, 0)
			require.NoError(t, err)
			synctest.Wait()
			go func() { _, _ = h.s.Do(ctx, 1) }()
			synctest.Wait()
			cancel()
			synctest.Wait()
			done, cancel := context.WithCancel(bg)
			cancel()
			_ = h.s.Shutdown(done)
			close(h.let)
			_, _ = f.Await(bg)
			require.NoError(t, h.s.Shutdown(bg))
			require.NotContains(t, dead, 1)
			require.EqualValues(t, 1, h.s.Stats().Cancelled)
		})
	})
	t.Run("late", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			gone, n := atomic.Int32{}, atomic.Int32{}
			s := stage.New("s", func(context.Context, int) (int, error) { time.Sleep(20 * time.Millisecond); return 0, nil },
				stage.Options{Queue: 200, Delay: 5 * time.Millisecond}).OnFail(func(ctx context.Context, _ int, _ error) {
				if n.Add(1); ctx.Err() != nil {
					gone.Add(1)
				}
			})
			for range 200 {
				go func() {
					ctx, cancel := context.WithTimeout(bg, 11*time.Millisecond) // everything else happens at multiples of 4 ms
					defer cancel()
					_, _ = s.Do(ctx, 1)
				}()
				time.Sleep(4 * time.Millisecond)
			}
			require.NoError(t, s.Shutdown(bg))
			require.Zero(t, gone.Load(), "of %d reported tasks, those whose caller had cancelled them", n.Load())
		})
	})
}

// A child whose root is cut off by the Close of another stage is reported, because its own caller has not cancelled it.
func TestAChildOfACutRoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dead []int
		leaf := hold(stage.Options{Width: 1, Queue: 4})
		leaf.s.OnFail(func(_ context.Context, n int, _ error) { dead = append(dead, n) })
		root := stage.New("root", func(ctx context.Context, n int) (int, error) {
			if err := leaf.s.Submit(ctx, n); err != nil {
				return 0, err
			}
			<-ctx.Done()
			return n, nil // has done its own part
		}, stage.Options{}).OnFail(func(_ context.Context, n int, _ error) { dead = append(dead, n) })
		require.NoError(t, leaf.s.Submit(bg, 100)) // occupies the leaf
		synctest.Wait()
		require.NoError(t, root.Submit(bg, 1))
		synctest.Wait()
		done, cancel := context.WithCancel(bg)
		cancel()
		_ = root.Shutdown(done)
		close(leaf.let)
		require.NoError(t, stage.Shutdown(bg, root, leaf.s))
		require.Contains(t, dead, 1, "root %s; leaf %s", brief(root.Stats()), brief(leaf.s.Stats()))
	})
}

// Each task of a batch ends once, even if OnFail ends the worker while other tasks of the batch have not begun. Their parent is
// done when all are.
func TestABatchEndsItsTasksTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := true
		s := stage.NewBatch("b", func(context.Context, []int, []int) error { time.Sleep(60 * time.Millisecond); return nil },
			stage.Options{Batch: 4, Queue: 100, Delay: time.Millisecond}).OnFail(func(context.Context, int, error) {
			if first {
				first = false
				runtime.Goexit()
			}
			time.Sleep(time.Second)
		})
		for range 13 { // so that the stage finds, 240 ms later, that its queue is too long, and sheds the next tasks
			require.NoError(t, s.Submit(bg, 0))
		}
		root := stage.New("root", func(ctx context.Context, _ int) (int, error) {
			for i := range 14 { // 3 that are done, 4 that are abandoned, and 4 and 3 more
				if err := s.Submit(ctx, i); err != nil {
					return 0, err
				}
			}
			return 0, nil
		}, stage.Options{})
		_, err := root.Do(bg, 1)
		require.ErrorIs(t, err, suspend.ErrAbandoned)
		st := s.Stats()
		require.NoError(t, stage.Shutdown(bg, root, s))
		require.False(t, first)
		require.Zero(t, st.Waiting+st.Busy, "root is done, and children of it are not: %s", brief(st))
	})
}

// The OnFail of a batch stage must not run in the slot of an earlier stage of the same pool.
func TestAStaleSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := stage.NewPool("p", 2, nil)
		var in, most atomic.Int32
		a := stage.New("a", func(_ context.Context, n int) (int, error) {
			most.Store(max(most.Load(), in.Add(1)))
			time.Sleep(10 * time.Millisecond)
			in.Add(-1)
			return n, nil
		}, stage.Options{Pool: p, Width: 1, Queue: 100})
		b := stage.NewBatch("b", func(_ context.Context, in, _ []int) error { return errOops },
			stage.Options{Pool: p, Width: 1, Queue: 100, Batch: 1}).OnFail(func(ctx context.Context, n int, _ error) {
			time.Sleep(5 * time.Millisecond)
			_, _ = a.Do(ctx, n) // begins again in the same stage
		})
		require.NoError(t, stage.Pipe(a, b).Submit(bg, 1))
		time.Sleep(12 * time.Millisecond)
		require.NoError(t, a.Submit(bg, 2)) // another worker has the slot of a
		time.Sleep(time.Second)
		require.NoError(t, stage.Shutdown(bg, a, b))
		require.EqualValues(t, 1, most.Load(), "handlers of a stage of width 1 at a time")
	})
}

// When its context ends, a Do returns, unless the context is that of Lazily: then it waits for its task. A running handler
// decides the fate of the task: the error of its context means Cancelled, and any other error is a failure, which is reported to
// OnFail although no caller waits.
func TestOnFailOfADoThatHasReturned(t *testing.T) {
	for _, fails := range []bool{false, true} {
		for _, lazily := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				var dead []error
				let := []chan struct{}{make(chan struct{}), make(chan struct{})}
				s := stage.New("s", func(ctx context.Context, i int) (int, error) {
					<-let[i]
					if i > 0 && fails {
						return 0, errOops
					}
					return 0, ctx.Err()
				}, stage.Options{Width: 1}).OnFail(func(_ context.Context, _ int, err error) { dead = append(dead, err) })
				require.NoError(t, s.Submit(bg, 0)) // takes the slot, so that the Do does not run its handler itself
				ctx, cancel := context.WithCancel(bg)
				with := ctx
				if lazily {
					with = suspend.Lazily(ctx)
				}
				var result error
				go func() { _, result = s.Do(with, 1) }()
				synctest.Wait()
				close(let[0])
				synctest.Wait()
				cancel()
				synctest.Wait()
				require.Equal(t, !lazily, result != nil, "the Do has returned")
				close(let[1])
				synctest.Wait()
				require.ErrorIs(t, result, context.Canceled)
				require.NoError(t, s.Shutdown(bg))
				if fails {
					require.Equal(t, []error{errOops}, dead)
					require.EqualValues(t, 1, s.Stats().Failed)
				} else {
					require.Empty(t, dead)
					require.EqualValues(t, 1, s.Stats().Cancelled)
				}
			})
		}
	}
}
