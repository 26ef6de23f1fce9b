package stage_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/suspend"
)

// returns reports whether f returns within two seconds. If f does not, its goroutine is left behind.
func returns(f func()) bool {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
		return true
	case <-time.After(2 * time.Second):
		return false
	}
}

// A task that moves to a stage with another clock waits by that clock.
func TestTwoClocks(t *testing.T) {
	v := schedtest.NewVirtual()
	v.Advance(100 * 365 * 24 * time.Hour) // ahead of the real clock
	a := stage.New("a", double, stage.Options{Queue: 1000})
	b := stage.New("b", double, stage.Options{On: v, Queue: 1000, Delay: time.Hour})
	p := stage.Pipe(a, b)
	for i := range 100 {
		require.NoError(t, p.Submit(bg, i))
		if i == 50 {
			for b.Stats().Waiting+b.Stats().Busy+a.Stats().Waiting+a.Stats().Busy > 0 {
				runtime.Gosched()
			}
			v.Advance(time.Second)
		}
	}
	require.NoError(t, stage.Shutdown(bg, a, b))
	st := b.Stats()
	require.LessOrEqual(t, st.Wait.Quantile(1), time.Minute, "late %d of %d; the clock of b has moved by a second", st.Late, st.Accepted)
}

// If the key function of a Submit in a handler panics, no child remains.
func TestAKeyThatPanics(t *testing.T) {
	r := stage.Replicate(2, func(n int) uint64 { panic(errOops) }, func(i int) *stage.Stage[int, int] {
		return stage.New(fmt.Sprint("r", i), double, stage.Options{})
	})
	s := stage.New("s", func(ctx context.Context, n int) (int, error) { return n, r.Submit(ctx, n) },
		stage.Options{OnPanic: func(any, []byte) {}})
	require.True(t, returns(func() {
		_, err := s.Do(bg, 1)
		require.ErrorIs(t, err, errOops)
	}), "the task has failed, but its Do has not returned: %s", brief(s.Stats()))
}

func TestAContextThatPanics(t *testing.T) {
	leaf := hold(stage.Options{Width: 1, Queue: stage.NoQueue})
	require.NoError(t, leaf.s.Submit(bg, 0))
	<-leaf.begun
	s := stage.New("s", func(ctx context.Context, n int) (int, error) {
		_, err := leaf.s.Begin(&schedtest.Moody{Context: ctx, Panic: errOops}, n) // leaf is full, so Begin waits with the context
		return n, err
	}, stage.Options{OnPanic: func(any, []byte) {}})
	ok := returns(func() {
		_, err := s.Do(bg, 1)
		require.ErrorIs(t, err, errOops)
	})
	st, l := s.Stats(), leaf.s.Stats()
	close(leaf.let)
	require.True(t, ok, "the task has failed, but its Do has not returned: %s; leaf: %s", brief(st), brief(l))
}

// A bounded scheduler refuses tasks while it is full.
type bounded struct {
	full    atomic.Bool
	started atomic.Int32
}

func (b *bounded) Go(f func()) error {
	if b.full.Load() {
		return errOops
	}
	b.started.Add(1)
	go f()
	return nil
}

// A scheduler has refused a worker, because it was full. Later the stage uses the scheduler again.
func TestASchedulerThatWasFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var on bounded
		s := stage.New("s", double, stage.Options{On: &on})
		on.full.Store(true)
		require.NoError(t, s.Submit(bg, 1)) // runs on a goroutine
		synctest.Wait()
		require.Zero(t, on.started.Load())
		require.EqualValues(t, 1, s.Stats().Completed)
		on.full.Store(false)
		require.NoError(t, s.Submit(bg, 1))
		require.NoError(t, s.Shutdown(bg))
		require.EqualValues(t, 1, on.started.Load(), "the handler runs outside of its scheduler")
	})
}

// If the scheduler is closed, accepted tasks run on goroutines, including retries, although the scheduler drops its timers.
func TestARetryOnAClosedLoop(t *testing.T) {
	delayed := func(s *stage.Stage[int, int]) { // or the next try has already begun
		for st := s.Stats(); st.Delayed+int(st.Retried) == 0; st = s.Stats() {
			runtime.Gosched()
		}
	}
	try := func(name string, after time.Duration, closed func(l *eventloop.Loop, s *stage.Stage[int, int], begin func())) {
		t.Run(name, func(t *testing.T) {
			loop, err := eventloop.New(eventloop.Options{})
			require.NoError(t, err)
			var tries atomic.Int32
			let := make(chan struct{}, 10)
			s := stage.New("s", func(_ context.Context, n int) (int, error) {
				if tries.Add(1) == 1 {
					_ = suspend.Blocking(bg, func() { <-let })
					return 0, errOops
				}
				return n, nil
			}, stage.Options{On: loop, Retry: func(error, int) (time.Duration, bool) { return after, true }})
			var f interface {
				Await(ctx context.Context) (int, error)
			}
			closed(loop, s, func() {
				f, err = s.Begin(bg, 42)
				require.NoError(t, err)
				let <- struct{}{}
			})
			require.True(t, returns(func() { _, _ = f.Await(bg) }), "the retry is lost: %d tries, %s", tries.Load(), brief(s.Stats()))
		})
	}
	try("closed before", 20*time.Millisecond, func(l *eventloop.Loop, s *stage.Stage[int, int], begin func()) {
		require.NoError(t, l.Close())
		begin()
	})
	try("closed while it is delayed", 200*time.Millisecond, func(l *eventloop.Loop, s *stage.Stage[int, int], begin func()) {
		begin()
		delayed(s)
		go l.Close()
	})
	try("closed while the handler runs", 200*time.Millisecond, func(l *eventloop.Loop, s *stage.Stage[int, int], begin func()) {
		entered, leave := make(chan struct{}), make(chan struct{})
		require.NoError(t, l.Go(func() { _ = suspend.Blocking(bg, func() { close(entered); <-leave }) }))
		<-entered
		go l.Close()
		for l.Go(func() {}) == nil {
			runtime.Gosched()
		}
		begin()
		delayed(s)
		close(leave)
	})
}

// A delayed task whose context ends is not tried again. It returns its place, and releases its scheduler.
func TestACancelledDelayHoldsItsScheduler(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)() // a task that nobody waits for would keep Run from ending
	sched := fifo.New(fifo.Options{})
	var s *stage.Stage[int, int]
	require.NoError(t, sched.Run(bg, func(context.Context) error {
		s = stage.New("s", func(context.Context, int) (int, error) { return 0, errOops },
			stage.Options{On: sched, Width: 1, Queue: stage.NoQueue, Reject: true,
				Retry: func(error, int) (time.Duration, bool) { return time.Hour, true }})
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		f, err := s.Begin(ctx, 1)
		if err != nil {
			return err
		}
		_ = f
		for s.Stats().Delayed == 0 {
			suspend.Yield()
		}
		cancel()
		return nil
	}))
}

// If the pool belongs to the stage, each accepted task has its result when Shutdown returns.
func TestAnswersBeforeCloseReturns(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
		for i := range 500 {
			s := stage.New("s", double, stage.Options{On: on, Width: 1 + i%2})
			f, err := s.Begin(bg, i)
			require.NoError(t, err)
			require.NoError(t, s.Shutdown(bg))
			if _, done, _ := f.Try(); !done {
				t.Fatalf("round %d: Close has returned nil, and the future has no answer", i)
			}
		}
	})
}

// looking is a scheduler whose Hold looks at the figures, so it must not be called under the guard.
type looking struct{ look func() }

func (looking) Go(f func()) error { go f(); return nil }

func (l looking) Hold() (release func(), err error) { l.look(); return func() {}, nil }

func TestHoldIsCalledUnderTheGuard(t *testing.T) {
	var s *stage.Stage[int, int]
	var tries atomic.Int32
	s = stage.New("s", func(context.Context, int) (int, error) {
		if tries.Add(1) == 1 {
			return 0, errOops
		}
		return 1, nil
	}, stage.Options{On: &looking{func() { s.Stats() }}, Retry: func(error, int) (time.Duration, bool) { return time.Millisecond, true }})
	require.True(t, returns(func() { _, _ = s.Do(bg, 1) }), "Hold looks at the figures, and waits for the guard for ever")
}
