package scope_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
	"github.com/stretchr/testify/require"
)

// A task under a Limit calls Map with the same Limit, and so waits for its own place. The end of its context must end the wait.
func TestMapOverItsOwnLimit(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
		for depth := 1; depth <= 3; depth++ {
			four := scope.Limit(1, on)
			for range depth - 1 {
				four = scope.Limit(2, four) // the place of the outer Limit is free; Map waits for the place of an inner one
			}
			ctx, end := cancel.New(bg)
			waits, err := make(chan bool), make(chan error, 1)
			require.NoError(t, four.Go(func() {
				close(waits)
				_, failed := scope.Map(ctx, four, make([]int, 3), func(context.Context, int) (int, error) {
					t.Error("begun without a place")
					return 0, nil
				})
				err <- failed
			}))
			<-waits
			end(errOops)
			require.ErrorIs(t, <-err, errOops)
			ran := make(chan bool)
			require.NoError(t, four.Go(func() { close(ran) }))
			<-ran // checks that the place was not lost
		}
	})
}

// When a scope ends, its functions that wait in a Limit are withdrawn, however they were passed to it. Functions of other
// scopes, and those passed to the Limit directly, run in order.
func TestWhatWaitsInALimitIsWithdrawn(t *testing.T) {
	for name, end := range map[string]func(s *scope.Scope) error{
		"Cancel(nil)": func(s *scope.Scope) error { s.Cancel(nil); return nil },
		"a cause":     func(s *scope.Scope) error { s.Cancel(errOops); return errOops },
	} {
		t.Run(name, func(t *testing.T) {
			schedtest.OnFIFO(t, func(on *fifo.Scheduler) {
				one := scope.Limit(1, on)
				var gate promise.Promise[int]
				var ran []string
				note := func(what string) func(context.Context) error {
					return func(context.Context) error { ran = append(ran, what); return nil }
				}
				_ = one.Go(func() { _, _ = gate.Await(bg) })
				var want error
				err := scope.Run(bg, func(ctx context.Context, outer *scope.Scope) error {
					outer.Go(one, note("another scope's"))
					err := scope.Run(ctx, func(ctx context.Context, s *scope.Scope) error {
						s.Go(one, note("withdrawn"))
						s.Go(outer.On(one), note("withdrawn through On"))
						s.Go(scope.Limit(5, one), note("withdrawn from the inner Limit"))
						_ = one.Go(func() { ran = append(ran, "the Limit's own") })
						schedtest.Settle()
						want = end(s)
						return nil
					})
					require.Equal(t, want, err)
					require.Empty(t, ran)
					_ = gate.Fill(1)
					return nil
				})
				require.NoError(t, err)
				schedtest.Settle()
				require.Equal(t, []string{"another scope's", "the Limit's own"}, ran)
			})
		})
	}
}

// A child that was withdrawn counts as stopped by the cancellation.
func TestAWithdrawnChildWasStopped(t *testing.T) {
	schedtest.OnFIFO(t, func(on *fifo.Scheduler) {
		one := scope.Limit(1, on)
		var gate promise.Promise[int]
		_ = one.Go(func() { _, _ = gate.Await(bg) })
		ctx, end := cancel.New(bg)
		_ = on.Go(func() { end(errOops) })
		for v, err := range scope.Stream(ctx, one, 2, numbers(3), func(context.Context, int) (int, error) { return 0, nil }) {
			require.ErrorIs(t, err, errOops)
			require.Zero(t, v)
		}
		_, err := scope.First(ctx, one, func(context.Context) (int, error) { return 1, nil })
		require.ErrorIs(t, err, errOops)
		_ = gate.Fill(1)
		v, err := scope.First(bg, one, func(context.Context) (int, error) { return 1, nil }, func(context.Context) (int, error) { return 2, nil })
		require.NoError(t, err)
		require.Equal(t, 1, v)
	})
}

// A long-lived scope keeps no memory of functions that waited and have begun, and a Limit keeps none of withdrawn functions. A
// hundred thousand functions that are withdrawn at once need no deeper stack than one.
func TestALimitKeepsNothing(t *testing.T) {
	schedtest.OnFIFO(t, func(on *fifo.Scheduler) {
		var objects schedtest.Objects
		inner := scope.Limit(1, on)
		one := scope.Limit(1, inner)
		var gate promise.Promise[int]
		require.NoError(t, scope.Run(bg, func(_ context.Context, s *scope.Scope) error {
			begin := func(on suspend.Spawner) {
				o := objects.New()
				s.Go(on, func(context.Context) error { _ = *o; return nil })
			}
			begin(one)
			begin(one)
			for range 3 {
				schedtest.Settle()
			}
			objects.Collected(t, 0)
			return nil
		}))
		_ = inner.Go(func() { _, _ = gate.Await(bg) })
		err := scope.Run(bg, func(_ context.Context, s *scope.Scope) error {
			for range 100_000 {
				s.Go(one, func(context.Context) error { t.Error("begun"); return nil })
			}
			o := objects.New()
			s.Go(one, func(context.Context) error { _ = *o; return nil })
			return errOops
		})
		require.Equal(t, errOops, err)
		objects.Collected(t, 0)
		_ = gate.Fill(1)
	})
}

// stopped is a context that frees a place while the Limit registers the withdrawal of a function. It counts the registrations.
type stopped struct {
	context.Context
	free       func()
	registered int
}

func (c *stopped) Done() <-chan struct{} { return make(chan struct{}) }

func (c *stopped) AfterFunc(func()) (stop func() bool) {
	c.registered++
	c.free()
	return func() bool { c.registered--; return true }
}

// A function may begin while the Limit registers its withdrawal. It leaves no registration in its context.
func TestALimitKeepsNoRegistration(t *testing.T) {
	schedtest.OnFIFO(t, func(on *fifo.Scheduler) {
		one := scope.Limit(1, on)
		var gate promise.Promise[int]
		_ = one.Go(func() { _, _ = gate.Await(bg) })
		schedtest.Settle()
		ran := false
		ctx := &stopped{Context: bg}
		ctx.free = func() {
			_ = gate.Fill(1)
			schedtest.Settle()
			require.True(t, ran)
		}
		require.NoError(t, one.(sched.Withdrawer).GoUntil(ctx, func() { ran = true }, func() { t.Error("withdrawn") }))
		require.True(t, ran)
		require.Zero(t, ctx.registered)
	})
}

// If the scheduler refuses a function, its place is free again.
func TestARefusedGoLeavesItsPlace(t *testing.T) {
	refuse := true
	ran := make(chan bool, 1)
	one := scope.Limit(1, spawnerFunc(func(f func()) error {
		if refuse {
			return suspend.ErrClosed
		}
		go f()
		return nil
	}))
	require.Error(t, one.Go(func() {}))
	refuse = false
	require.NoError(t, one.Go(func() { ran <- true }))
	<-ran
}

// A Limit has the capabilities of its scheduler, and so has the Spawner of a scope.
func TestCapabilitiesThroughALimit(t *testing.T) {
	loop, err := eventloop.New(eventloop.Options{})
	require.NoError(t, err)
	defer loop.Close()
	for name, on := range map[string]suspend.Spawner{"a Limit": scope.Limit(2, loop), "two": scope.Limit(2, scope.Limit(3, loop))} {
		_, timers := suspend.As[sched.Timers](on)
		_, blocker := suspend.As[sched.Blocker](on)
		_, holder := suspend.As[sched.Holder](on)
		_, executor := suspend.As[suspend.Executor](on)
		require.Equal(t, [4]bool{true, true, true, true}, [4]bool{timers, blocker, holder, executor}, name)
	}
	report := simulation.Run(func(ctx context.Context, w *simulation.World) error {
		_, clock := suspend.As[sched.Clock](scope.Limit(2, w))
		fired := false
		suspend.AfterFunc(scope.Limit(2, w), time.Hour, func() { fired = true })
		if err := suspend.Sleep(ctx, 2*time.Hour); err != nil || !fired || !clock {
			return errors.New("the timer or the clock of a Limit is not the World's")
		}
		return nil
	}, simulation.Options{Seed: 1})
	require.NoError(t, report.Err)
	s := fifo.New(fifo.Options{})
	require.NoError(t, s.Run(bg, func(ctx context.Context) error {
		return scope.Run(ctx, func(_ context.Context, sc *scope.Scope) error {
			h, ok := suspend.As[sched.Holder](sc.On(scope.Limit(1, s)))
			require.True(t, ok)
			release, err := h.Hold()
			require.NoError(t, err)
			require.EqualValues(t, 1, s.Stats().Suspended, "the scheduler is not held")
			release()
			return nil
		})
	}))
}
