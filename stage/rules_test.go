package stage_test

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/suspend"
)

// held is a stage whose handlers wait until they are released.
type held struct {
	s     *stage.Stage[int, int]
	begun chan int
	let   chan struct{}
}

func hold(o stage.Options) held {
	h := held{begun: make(chan int, 100), let: make(chan struct{})}
	h.s = stage.New("held", func(ctx context.Context, n int) (int, error) {
		h.begun <- n
		select {
		case <-h.let:
			return n, nil
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}, o)
	return h
}

func (h held) close(t testing.TB) {
	close(h.let)
	require.NoError(t, h.s.Shutdown(bg))
	holds(t, h.s.Stats())
}

// Submit uses the context only until the task is accepted. Afterwards the caller may cancel it, and the task is still done.
func TestSubmitIsForTheWayInOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		ctx, cancel := context.WithCancel(context.WithValue(bg, key{}, "value"))
		let := make(chan struct{})
		s := stage.New("s", func(ctx context.Context, n int) (int, error) {
			<-let
			require.Equal(t, "value", ctx.Value(key{}))
			require.NoError(t, ctx.Err())
			require.NoError(t, context.Cause(ctx))
			child, stop := context.WithCancel(ctx)
			defer stop()
			require.NoError(t, child.Err())
			return n, nil
		}, stage.Options{})
		require.NoError(t, s.Submit(ctx, 1))
		cancel()
		close(let)
		require.NoError(t, s.Shutdown(bg))
		require.EqualValues(t, 1, s.Stats().Completed)
		require.ErrorIs(t, s.Submit(ctx, 1), context.Canceled)
		require.EqualValues(t, 1, s.Stats().Arrived, "a Do with a done context does not count as an arrival")
	})
}

// A cancelled Do returns at once. A waiting task is not begun, and a running handler sees the cancellation.
func TestDoIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hold(stage.Options{Width: 1, Queue: 2})
		ctx, cancel := context.WithCancelCause(bg)
		var all sync.WaitGroup
		for i := range 2 {
			all.Go(func() {
				_, err := h.s.Do(ctx, i)
				require.ErrorIs(t, err, errOops)
				require.ErrorIs(t, err, context.Canceled)
			})
			synctest.Wait()
		}
		require.Len(t, h.begun, 1)
		cancel(errOops)
		all.Wait()
		synctest.Wait()
		require.Len(t, h.begun, 1, "a task whose caller has gone was begun")
		require.EqualValues(t, 2, h.s.Stats().Cancelled)
		h.close(t)
	})
}

func TestBeginIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hold(stage.Options{Width: 1, Queue: 2})
		ctx, cancel := context.WithCancel(bg)
		f, err := h.s.Begin(bg, 1)
		require.NoError(t, err)
		g, err := h.s.Begin(ctx, 2)
		require.NoError(t, err)
		cancel()
		h.let <- struct{}{}
		v, err := f.Await(bg)
		require.NoError(t, err)
		require.Equal(t, 1, v)
		_, err = g.Await(bg)
		require.ErrorIs(t, err, context.Canceled)
		require.Len(t, h.begun, 1)
		h.close(t)
	})
}

func TestFullRejects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hold(stage.Options{Width: 2, Queue: 3, Reject: true})
		for i := range 5 {
			require.NoError(t, h.s.Submit(bg, i), "a burst on an idle stage fills Queue and Width")
		}
		for _, err := range []error{h.s.Submit(bg, 5), h.s.TrySubmit(bg, 5), func() error { _, err := h.s.Do(bg, 5); return err }()} {
			require.ErrorIs(t, err, stage.ErrFull)
			require.ErrorIs(t, err, stage.ErrOverload)
			require.ErrorContains(t, err, "held: ")
		}
		require.EqualValues(t, 3, h.s.Stats().Rejected)
		require.Zero(t, testing.AllocsPerRun(100, func() { _ = h.s.Submit(bg, 5) }), "a rejection allocates")
		require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = h.s.Do(bg, 5) }), "a rejection allocates")
		h.close(t)
	})
}

func TestNoQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hold(stage.Options{Width: 1, Queue: stage.NoQueue, Reject: true})
		require.NoError(t, h.s.Submit(bg, 1))
		require.ErrorIs(t, h.s.Submit(bg, 1), stage.ErrFull)
		h.close(t)
	})
}

// Callers that wait for room are admitted in order, and a cancelled one leaves nothing behind.
func TestFullWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hold(stage.Options{Width: 1, Queue: stage.NoQueue})
		require.NoError(t, h.s.Submit(bg, 0))
		require.ErrorIs(t, h.s.TrySubmit(bg, 9), stage.ErrFull)
		ctx, cancel := context.WithCancel(bg)
		for i := 1; i <= 3; i++ {
			c := bg
			if i == 2 {
				c = ctx
			}
			go func() {
				if err := h.s.Submit(c, i); i == 2 {
					require.ErrorIs(t, err, context.Canceled)
				}
			}()
			synctest.Wait()
		}
		require.Equal(t, 3, h.s.Stats().Outside)
		cancel()
		synctest.Wait()
		require.Equal(t, 2, h.s.Stats().Outside)
		for _, want := range []int{0, 1, 3} {
			require.Equal(t, want, <-h.begun)
			h.let <- struct{}{}
			synctest.Wait()
		}
		h.close(t)
	})
}

// Tasks whose Do has returned do not keep others out: a queue with n of them is cleared by n rejections.
func TestTheGoneAreSwept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hold(stage.Options{Width: 1, Queue: 10, Reject: true})
		require.NoError(t, h.s.Submit(bg, 0))
		synctest.Wait()
		ctx, cancel := context.WithCancel(bg)
		for i := range 10 {
			go func() { _, _ = h.s.Do(ctx, i) }()
		}
		synctest.Wait()
		require.Equal(t, 10, h.s.Stats().Waiting)
		cancel()
		synctest.Wait()
		tries := 0
		for h.s.Submit(bg, 1) != nil {
			tries++
		}
		require.LessOrEqual(t, tries, 10)
		require.EqualValues(t, 10, h.s.Stats().Cancelled)
		require.Equal(t, 1, h.s.Stats().Waiting)
		h.close(t)
	})
}

func TestOrder(t *testing.T) {
	for name, lifo := range map[string]bool{"FIFO": false, "LIFO": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := hold(stage.Options{Width: 1, Queue: 5, LIFO: lifo})
				for i := range 5 {
					require.NoError(t, h.s.Submit(bg, i))
					synctest.Wait()
				}
				want := []int{0, 1, 2, 3, 4}
				if lifo {
					want = []int{0, 4, 3, 2, 1}
				}
				for _, n := range want {
					require.Equal(t, n, <-h.begun)
					h.let <- struct{}{}
				}
				h.close(t)
			})
		})
	}
}

// A retry still counts for the bound while it is delayed, and then goes to the front of the queue.
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var order []int
		var dead []error
		s := stage.New("s", func(_ context.Context, n int) (int, error) {
			order = append(order, n)
			if n == 0 {
				return 0, errOops
			}
			time.Sleep(time.Second)
			return n, nil
		}, stage.Options{Width: 1, Queue: 2, Reject: true, Retry: func(err error, try int) (time.Duration, bool) {
			require.Equal(t, errOops, err)
			return 1500 * time.Millisecond, try < 3
		}})
		s.OnFail(func(_ context.Context, n int, err error) {
			require.Equal(t, 0, n)
			dead = append(dead, err)
		})
		f, err := s.Begin(bg, 0)
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, 1, s.Stats().Delayed)
		require.NoError(t, s.Submit(bg, 1))
		require.NoError(t, s.Submit(bg, 2))
		require.ErrorIs(t, s.Submit(bg, 3), stage.ErrFull, "a delayed task keeps its place")
		holds(t, s.Stats())
		_, err = f.Await(bg)
		require.Equal(t, errOops, err)
		require.Equal(t, []error{errOops}, dead)
		require.Equal(t, []int{0, 1, 2, 0, 0}, order)
		require.Equal(t, 3500*time.Millisecond, time.Since(start))
		require.EqualValues(t, 2, s.Stats().Retried)
		require.EqualValues(t, 1, s.Stats().Failed)
		require.NoError(t, s.Shutdown(bg))
	})
}

func TestARetryGoesToTheFront(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []int
		s := stage.New("s", func(_ context.Context, n int) (int, error) {
			order = append(order, n)
			if n == 0 && len(order) == 1 {
				return 0, errOops
			}
			time.Sleep(time.Second)
			return n, nil
		}, stage.Options{Width: 1, Queue: 5, Retry: func(error, int) (time.Duration, bool) { return 1500 * time.Millisecond, true }})
		for i := range 4 {
			require.NoError(t, s.Submit(bg, i))
		}
		require.NoError(t, s.Shutdown(bg), "Shutdown waits for retries")
		require.Equal(t, []int{0, 1, 2, 0, 3}, order)
	})
}

// While a task waits for its next try, neither the Run nor the Close of its scheduler returns.
func TestARetryHoldsItsScheduler(t *testing.T) {
	for name, ends := range map[string]func(submit func(on suspend.Spawner) error) error{
		"fifo": func(submit func(on suspend.Spawner) error) error {
			sched := fifo.New(fifo.Options{})
			return sched.Run(bg, func(context.Context) error { return submit(sched) })
		},
		"workstealing": func(submit func(on suspend.Spawner) error) error {
			pool := workstealing.New(workstealing.Options{})
			err := submit(pool)
			pool.Close()
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			var tries atomic.Int32
			var s *stage.Stage[int, int]
			require.NoError(t, ends(func(on suspend.Spawner) error {
				failed := make(chan struct{})
				s = stage.New("s", func(_ context.Context, n int) (int, error) {
					if tries.Add(1) == 1 {
						return 0, errOops
					}
					return n, nil
				}, stage.Options{On: on, Retry: func(error, int) (time.Duration, bool) {
					close(failed)
					return 50 * time.Millisecond, true
				}})
				if err := s.Submit(bg, 1); err != nil {
					return err
				}
				return suspend.Blocking(bg, func() {
					<-failed
					for s.Stats().Delayed == 0 { // waits until the worker has counted it
						runtime.Gosched()
					}
				})
			}))
			require.EqualValues(t, 2, tries.Load(), "closed between two tries")
			require.EqualValues(t, 1, s.Stats().Completed)
		})
	}
}

// When Close drops a delayed task, it releases the scheduler at once, although the task's timer is far away.
func TestACutReleasesTheScheduler(t *testing.T) {
	start := time.Now()
	sched := fifo.New(fifo.Options{})
	require.NoError(t, sched.Run(bg, func(context.Context) error {
		s := stage.New("s", func(context.Context, int) (int, error) { return 0, errOops },
			stage.Options{On: sched, Retry: func(error, int) (time.Duration, bool) { return time.Hour, true }})
		if err := s.Submit(bg, 1); err != nil {
			return err
		}
		for s.Stats().Delayed == 0 {
			suspend.Yield()
		}
		ctx, cancel := context.WithCancel(bg)
		cancel()
		_ = s.Shutdown(ctx)
		return s.Shutdown(bg)
	}))
	require.Less(t, time.Since(start), time.Minute)
}

// However a handler ends, its slot is returned, and the end is reported once.
func TestHandlersThatDoNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen any
		var dead []error
		s := stage.New("s", func(_ context.Context, n int) (int, error) {
			switch n {
			case 1:
				panic(errOops)
			case 2:
				runtime.Goexit()
			}
			return n, nil
		}, stage.Options{Queue: 5, OnPanic: func(v any, stack []byte) {
			seen = v
			require.Contains(t, string(stack), "TestHandlersThatDoNotReturn")
		}}).OnFail(func(_ context.Context, _ int, err error) { dead = append(dead, err) })
		var futures []promise.Future[int]
		for i := range 4 {
			f, err := s.Begin(bg, i)
			require.NoError(t, err)
			futures = append(futures, f)
		}
		_, err := futures[1].Await(bg)
		var p *suspend.PanicError
		require.ErrorAs(t, err, &p)
		require.ErrorIs(t, err, errOops)
		require.Equal(t, errOops, seen)
		_, err = futures[2].Await(bg)
		require.ErrorIs(t, err, suspend.ErrAbandoned)
		v, err := futures[3].Await(bg)
		require.NoError(t, err)
		require.Equal(t, 3, v)
		require.Len(t, dead, 2)
		require.NoError(t, s.Shutdown(bg))
		holds(t, s.Stats())
		require.EqualValues(t, 2, s.Stats().Failed)
	})
}

// Two stages share a pool of one worker, and the second is narrow. The worker of the first returns its permit while it waits.
func TestASharedPoolCannotDeadlock(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
		pool := stage.NewPool("cpu", 1, on)
		a := stage.New("a", double, stage.Options{Pool: pool, Queue: stage.NoQueue, Width: 1})
		b := stage.New("b", func(_ context.Context, n int) (int, error) { suspend.Yield(); return n + 1, nil },
			stage.Options{Pool: pool, Queue: stage.NoQueue, Width: 1})
		c := stage.New("c", func(ctx context.Context, n int) (int, error) { return n, a.Submit(ctx, n) },
			stage.Options{Pool: pool, Queue: stage.NoQueue, Width: 1})
		p := stage.Pipe(a, b)
		for i := range 100 {
			require.NoError(t, p.Submit(bg, i))
			require.NoError(t, c.Submit(bg, i))
		}
		require.NoError(t, stage.Shutdown(bg, c, a, b))
		require.EqualValues(t, 200, a.Stats().Completed)
		require.EqualValues(t, 100, b.Stats().Completed)
	})
}

// A handler that calls Do of its own stage runs the task in its own slot.
func TestDoInAHandlerOfTheSameStage(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
		var s *stage.Stage[int, int]
		s = stage.New("factorial", func(ctx context.Context, n int) (int, error) {
			if n == 0 {
				return 1, nil
			}
			v, err := s.Do(ctx, n-1)
			return n * v, err
		}, stage.Options{On: on, Queue: stage.NoQueue})
		p := stage.Pipe(s, stage.New("same", func(_ context.Context, n int) (int, error) { return n, nil }, stage.Options{On: on}))
		v, err := p.Do(bg, 5)
		require.NoError(t, err)
		require.Equal(t, 120, v)
		require.NoError(t, s.Shutdown(bg))
		require.EqualValues(t, 6, s.Stats().Completed)
		holds(t, s.Stats())
	})
}

// A handler on a pool with one worker waits in Do for another stage of the same pool.
func TestDoInAHandlerOfTheSamePool(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
		pool := stage.NewPool("one", 1, on)
		inner := stage.New("inner", double, stage.Options{Pool: pool})
		outer := stage.New("outer", func(ctx context.Context, n int) (int, error) { return inner.Do(ctx, n) }, stage.Options{Pool: pool})
		for i := range 20 {
			f, err := outer.Begin(bg, i)
			require.NoError(t, err)
			v, err := f.Await(bg)
			require.NoError(t, err)
			require.Equal(t, 2*i, v)
		}
		require.NoError(t, stage.Shutdown(bg, outer, inner))
	})
}

func TestSetWidth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hold(stage.Options{Width: 4, Queue: 10})
		for i := range 10 {
			require.NoError(t, h.s.Submit(bg, i))
		}
		synctest.Wait()
		require.Equal(t, 4, h.s.Stats().Handlers)
		h.s.SetWidth(2)
		for range 3 {
			h.let <- struct{}{}
			synctest.Wait()
		}
		require.Equal(t, 2, h.s.Stats().Handlers)
		h.s.SetWidth(5)
		synctest.Wait()
		require.Equal(t, 5, h.s.Stats().Handlers)
		h.close(t)
	})
}

// Shutdown refuses callers that wait for room, and lets accepted tasks finish.
func TestCloseDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hold(stage.Options{Width: 1, Queue: 1})
		require.NoError(t, h.s.Submit(bg, 0))
		require.NoError(t, h.s.Submit(bg, 1))
		refused := make(chan error, 1)
		go func() { refused <- h.s.Submit(bg, 2) }()
		synctest.Wait()
		closed := make(chan error, 2)
		for range 2 {
			go func() { closed <- h.s.Shutdown(bg) }()
		}
		synctest.Wait()
		require.ErrorIs(t, <-refused, stage.ErrClosed)
		require.ErrorIs(t, h.s.Submit(bg, 3), stage.ErrClosed)
		require.Empty(t, closed)
		close(h.let)
		require.NoError(t, <-closed)
		require.NoError(t, <-closed)
		require.EqualValues(t, 2, h.s.Stats().Completed)
		holds(t, h.s.Stats())
	})
}

// A Shutdown whose context ends cuts the stage off: each task that has not begun is reported to OnFail once, and the contexts of
// running handlers end.
func TestCloseCutsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hold(stage.Options{Width: 2, Queue: 5, Retry: func(err error, _ int) (time.Duration, bool) {
			return time.Hour, err == errOops
		}})
		dead := map[int]error{}
		var mu sync.Mutex
		h.s.OnFail(func(_ context.Context, n int, err error) {
			mu.Lock()
			defer mu.Unlock()
			require.NotContains(t, dead, n)
			dead[n] = err
		})
		for i := range 4 {
			require.NoError(t, h.s.Submit(bg, i))
		}
		f, err := h.s.Begin(bg, 4)
		require.NoError(t, err)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		err = h.s.Shutdown(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "2 handlers still run")
		_, err = f.Await(bg)
		require.ErrorIs(t, err, stage.ErrClosed)
		synctest.Wait()
		require.Len(t, dead, 5)
		for _, err := range dead {
			require.ErrorIs(t, err, stage.ErrClosed)
		}
		require.NoError(t, h.s.Shutdown(bg))
		require.EqualValues(t, 5, h.s.Stats().Failed)
		holds(t, h.s.Stats())
	})
}

// A Close cuts the stage off at once, and its error has the number of dropped tasks. Each task is reported once. A handler may
// call Close.
func TestCloseAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead := map[int]error{}
		var told, closed error
		start := time.Now()
		var s *stage.Stage[int, int]
		s = stage.New("orders", func(ctx context.Context, n int) (int, error) {
			if n == 0 {
				return 0, errOops
			}
			time.Sleep(time.Second)
			closed = s.Close()
			told = ctx.Err()
			time.Sleep(time.Second) // no call waits for this
			return 0, nil
		}, stage.Options{Queue: 5, Retry: func(error, int) (time.Duration, bool) { return time.Hour, true }}).
			OnFail(func(_ context.Context, n int, err error) { dead[n] = err })
		for n := range 4 { // one is delayed, one runs, and two wait
			require.NoError(t, s.Submit(bg, n))
		}
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait() // a Sleep does not synchronise for the race detector
		require.EqualError(t, closed, "orders: closed: 3 tasks were dropped, 1 handlers still run, and 0 tasks wait for another stage: stage: closed")
		require.ErrorIs(t, closed, stage.ErrClosed)
		require.ErrorIs(t, told, context.Canceled)
		require.Len(t, dead, 3)
		for _, err := range dead {
			require.EqualError(t, err, "orders: stage: closed")
		}
		require.ErrorContains(t, s.Close(), "0 tasks were dropped, 1 handlers still run", "the handler runs")
		require.NoError(t, s.Shutdown(bg))
		require.NoError(t, s.Close(), "nothing is left")
		require.Equal(t, 2*time.Second, time.Since(start))
		require.EqualValues(t, 3, s.Stats().Failed)
		holds(t, s.Stats())
	})
}

// The Close of a flow cuts each of its stages off. The Close of an empty flow loses nothing.
func TestCloseOfAFlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := hold(stage.Options{Queue: 5}), hold(stage.Options{})
		p := stage.Pipe(a.s, b.s)
		for n := range 3 {
			require.NoError(t, p.Submit(bg, n))
		}
		require.NoError(t, b.s.Submit(bg, 3))
		synctest.Wait()
		err := p.Close()
		require.ErrorContains(t, err, "held: closed: 2 tasks were dropped, 1 handlers still run")
		require.ErrorContains(t, err, "\nheld: closed: 0 tasks were dropped, 1 handlers still run")
		require.ErrorIs(t, p.Submit(bg, 1), stage.ErrClosed)
		synctest.Wait()
		require.NoError(t, p.Shutdown(bg))
		require.NoError(t, p.Close())
	})
}

// A task that is delayed when Shutdown cuts the stage off is not tried again.
func TestCloseCutsOffRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dead []error
		var tries atomic.Int32 // two handlers count
		s := stage.New("s", func(ctx context.Context, n int) (int, error) {
			if tries.Add(1); n == 1 {
				<-ctx.Done()
			}
			return 0, errOops
		}, stage.Options{Width: 2, Retry: func(error, int) (time.Duration, bool) { return time.Hour, true }}).
			OnFail(func(_ context.Context, _ int, err error) { dead = append(dead, err) })
		require.NoError(t, s.Submit(bg, 0))
		require.NoError(t, s.Submit(bg, 1))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		require.Error(t, s.Shutdown(ctx))
		synctest.Wait()
		require.Len(t, dead, 2)
		require.NoError(t, s.Shutdown(bg))
		time.Sleep(2 * time.Hour)
		require.EqualValues(t, 2, tries.Load())
		require.EqualValues(t, 2, s.Stats().Failed)
		holds(t, s.Stats())
	})
}

// Accepted tasks are done although their scheduler is closed.
func TestTheSchedulerIsClosed(t *testing.T) {
	sched := fifo.New(fifo.Options{})
	require.NoError(t, sched.Run(bg, func(context.Context) error { return nil }))
	s := stage.New("s", double, stage.Options{On: sched})
	v, err := s.Do(bg, 21)
	require.NoError(t, err)
	require.Equal(t, 42, v)
	require.NoError(t, s.Shutdown(bg))
}

// Pipelines are deterministic on fifo, and Run ends by itself.
func TestOnFIFO(t *testing.T) {
	var got []int
	sched := fifo.New(fifo.Options{})
	require.NoError(t, sched.Run(bg, func(context.Context) error {
		a := stage.New("a", double, stage.Options{On: sched, Width: 3})
		b := stage.New("b", func(_ context.Context, n int) (int, error) {
			got = append(got, n)
			return n, nil
		}, stage.Options{On: sched})
		p := stage.Pipe(a, b)
		for i := range 10 {
			if err := p.Submit(bg, i); err != nil {
				return err
			}
		}
		return nil
	}))
	require.Equal(t, []int{0, 2, 4, 6, 8, 10, 12, 14, 16, 18}, got)
}

// A task is done, and its Do returns, when its children are done. Their first error is its error.
func TestTaskTrees(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
		var ended []int
		var mu sync.Mutex
		var leaf *stage.Stage[int, int]
		leaf = stage.New("leaf", func(ctx context.Context, n int) (int, error) {
			suspend.Yield()
			if n > 10 {
				for i := range 3 {
					if err := leaf.Submit(ctx, n/10+i); err != nil {
						return 0, err
					}
				}
			}
			mu.Lock()
			ended = append(ended, n)
			mu.Unlock()
			if n == 3 {
				return 0, errOops
			}
			return n, nil
		}, stage.Options{On: on, Width: 2, Queue: 100})
		root := stage.New("root", func(ctx context.Context, n int) (int, error) {
			_, err := leaf.Begin(ctx, n)
			return 1, err
		}, stage.Options{On: on})
		v, err := root.Do(bg, 50)
		require.NoError(t, err)
		require.Equal(t, 1, v)
		require.ElementsMatch(t, []int{50, 5, 6, 7}, ended)
		_, err = root.Do(bg, 20)
		require.Equal(t, errOops, err)
		require.Len(t, ended, 8)
		require.NoError(t, stage.Shutdown(bg, root, leaf))
	})
}

func TestATaskThatHasEndedTakesNoChildren(t *testing.T) {
	var leaked context.Context
	s := stage.New("s", func(ctx context.Context, n int) (int, error) {
		leaked = ctx
		return n, nil
	}, stage.Options{})
	_, err := s.Do(bg, 1)
	require.NoError(t, err)
	require.ErrorIs(t, s.Submit(leaked, 1), suspend.ErrEnded)
	_, err = s.Do(leaked, 1)
	require.ErrorIs(t, err, suspend.ErrEnded)
	require.NoError(t, s.Submit(stage.Detach(leaked), 1))
	require.NoError(t, s.Shutdown(bg))
	require.EqualValues(t, 2, s.Stats().Arrived)
}

// A panic in a handler that runs on the caller of Do ends the process even if the caller recovers, as it would in a worker.
func TestInlinePanicEndsTheProcess(t *testing.T) {
	if os.Getenv("BRAID_INLINE_PANIC") != "" {
		s := stage.New("s", func(context.Context, int) (int, error) { panic("from a handler") }, stage.Options{})
		defer func() {
			_ = recover()
			os.Exit(0)
		}()
		_, _ = s.Do(bg, 1)
		os.Exit(0)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestInlinePanicEndsTheProcess$")
	cmd.Env = append(os.Environ(), "BRAID_INLINE_PANIC=1")
	out, err := cmd.CombinedOutput()
	require.Error(t, err, "the process has continued: %s", out)
	require.Contains(t, string(out), "from a handler")
	require.Contains(t, string(out), "TestInlinePanicEndsTheProcess", "the stack of the handler is missing")
}

func TestInlinePanic(t *testing.T) {
	s := stage.New("s", func(context.Context, int) (int, error) { panic(errOops) }, stage.Options{OnPanic: func(any, []byte) {}})
	_, err := s.Do(bg, 1)
	require.ErrorIs(t, err, errOops)
	require.EqualValues(t, 1, s.Stats().Failed)
	require.NoError(t, s.Shutdown(bg))
}

func TestInlineGoexit(t *testing.T) {
	s := stage.New("s", func(context.Context, int) (int, error) { runtime.Goexit(); return 0, nil }, stage.Options{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = s.Do(bg, 1)
		t.Error("returned")
	}()
	<-ended
	require.EqualValues(t, 1, s.Stats().Failed)
	require.Equal(t, 0, s.Stats().Busy)
	require.NoError(t, s.Shutdown(bg))
}

// An idle stage has no goroutine and no timer after three seconds, even without a Close.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the bubble ends only if no other goroutine waits
		s := stage.New("s", func(context.Context, int) (int, error) { time.Sleep(time.Millisecond); return 0, nil }, stage.Options{Width: 50, Queue: 1000})
		for i := range 500 {
			require.NoError(t, s.Submit(bg, i))
		}
		synctest.Wait()
		time.Sleep(time.Second / 2)
		require.Positive(t, stage.IdleWorkers(s))
		time.Sleep(2500 * time.Millisecond)
		require.Zero(t, stage.IdleWorkers(s))
		require.False(t, stage.Ticking(s))
	})
}

// Workers are reused while there is work, and a worker that was just woken is not dismissed.
func TestWorkersLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stage.New("s", func(context.Context, int) (int, error) { return 0, nil }, stage.Options{})
		for range 100 {
			require.NoError(t, s.Submit(bg, 1))
			time.Sleep(100 * time.Millisecond)
			require.Equal(t, 1, stage.IdleWorkers(s))
		}
		require.NoError(t, s.Shutdown(bg))
	})
}

func TestErrorsOfARetryAreNotDropped(t *testing.T) {
	s := stage.New("s", func(context.Context, int) (int, error) { return 0, stage.ErrFull }, stage.Options{})
	require.NoError(t, s.Submit(bg, 1))
	require.NoError(t, s.Shutdown(bg))
	require.EqualValues(t, 1, s.Stats().Failed)
	require.EqualValues(t, 1, s.Stats().Dropped)
}

func TestMisuse(t *testing.T) {
	for name, f := range map[string]func(){
		"stage: nil function":                        func() { stage.New[int, int]("s", nil, stage.Options{}) },
		"stage: negative Width, Queue or Batch":      func() { stage.New("s", double, stage.Options{Width: -1}) },
		"stage: SetWidth with a width less than one": func() { stage.New("s", double, stage.Options{}).SetWidth(0) },
		"stage: a Pool with a width less than one":   func() { stage.NewPool("p", 0, nil) },
		"stage: Replicate with less than one stage":  func() { stage.Replicate[int, int](0, nil, nil) },
	} {
		require.PanicsWithValue(t, name, f)
	}
}
