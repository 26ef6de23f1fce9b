package rate_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/rate"
	"github.com/braidgo/braid/suspend"
)

// A smaller burst refuses a request when it is the first in the queue, and serves those behind it. A larger burst admits larger
// requests.
func TestSetBurstWithWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, begun := rate.NewLimiter(1, 4), time.Now()
		require.True(t, l.Allow(4))
		results := make([]string, 6)
		for i, n := range []int{2, 3, 1, 4, 2, 5} {
			go func() { results[i] = fmt.Sprint(l.WaitN(bg, n), " ", time.Since(begun).Round(ms)) }()
			if synctest.Wait(); i == 4 {
				require.InDelta(t, -12, l.Tokens(), 1e-6)
				l.SetBurst(2)
				synctest.Wait()
				require.InDelta(t, -5, l.Tokens(), 1e-6, "the large requests will be refused")
			}
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		tooLarge := rate.ErrTooLarge.Error()
		require.Equal(t, []string{"<nil> 2s", tooLarge + " 2s", "<nil> 3s", tooLarge + " 3s", "<nil> 5s", tooLarge + " 0s"}, results)
		require.InDelta(t, 2, l.Tokens(), 1e-6)
		l.SetBurst(5)
		require.NoError(t, l.WaitN(bg, 5))
		require.Equal(t, time.Hour+3*time.Second, time.Since(begun).Round(ms))
	})
}

// A burst of 0 refuses all waiting requests, on every scheduler.
func TestSetBurstOfZero(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		l, refused := rate.NewLimiter(rate.Every(time.Hour), 1), new(atomic.Int32)
		require.True(t, l.Allow(1))
		wait := func() {
			if l.Wait(bg) == rate.ErrTooLarge {
				refused.Add(1)
			}
		}
		schedtest.Run(t, s, wait, wait, func() {
			for l.Tokens() > -1.9 {
				suspend.Yield()
			}
			l.SetBurst(0)
		})
		require.EqualValues(t, 2, refused.Load())
		require.Zero(t, l.Tokens())
	})
}

// A request that cannot be served before its deadline fails at once, not at the deadline, on every scheduler.
func TestADeadlineThatIsTooEarly(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		l := rate.NewLimiter(rate.Every(24*time.Hour), 1)
		require.True(t, l.Allow(1))
		for _, timeout := range []func(d time.Duration) (context.Context, context.CancelFunc){
			func(d time.Duration) (context.Context, context.CancelFunc) { return context.WithTimeout(bg, d) },
			func(d time.Duration) (context.Context, context.CancelFunc) { return cancel.WithTimeout(bg, d) },
		} {
			schedtest.Run(t, s, func() {
				ctx, stop := timeout(23 * time.Hour)
				defer stop()
				require.Equal(t, rate.ErrTooLate, l.Wait(ctx))
				require.ErrorIs(t, rate.ErrTooLate, context.DeadlineExceeded)
				require.NoError(t, ctx.Err())
				require.GreaterOrEqual(t, l.Tokens(), 0., "it does not wait")
			})
		}
	})
}

// With a Limit of 0 a request with a deadline must wait, because a SetLimit may come before the deadline.
func TestADeadlineDuringAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, begun := rate.NewLimiter(0, 1), time.Now()
		require.True(t, l.Allow(1))
		ctx, stop := context.WithTimeout(bg, time.Minute)
		defer stop()
		time.AfterFunc(time.Second, func() { l.SetLimit(1) })
		require.NoError(t, l.Wait(ctx))
		require.Equal(t, 2*time.Second, time.Since(begun).Round(ms))
		l.SetLimit(0)
		require.Equal(t, context.DeadlineExceeded, l.Wait(ctx))
		require.Equal(t, time.Minute, time.Since(begun))
	})
}

// A deadline that has passed on the clock of the task, although its context has not ended, belongs to another clock. Only the end
// of the context ends the wait.
func TestADeadlineOfAnotherClock(t *testing.T) {
	v, l := schedtest.NewVirtual(), rate.NewLimiter(rate.Every(time.Hour), 1)
	v.Advance(200 * 365 * 24 * time.Hour)
	ended := make(chan error)
	_ = v.Go(func() {
		require.True(t, l.Allow(1))
		ctx, stop := context.WithTimeout(bg, time.Minute)
		defer stop()
		ended <- l.Wait(ctx)
	})
	schedtest.Eventually(t, "the timer", func() bool { return v.Timers() == 1 })
	v.Advance(time.Hour)
	require.NoError(t, <-ended)
}

// A SetLimit that makes a waiting request late does not refuse it, because another SetLimit may still serve it in time.
func TestALimitThatMakesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, begun := rate.NewLimiter(1, 1), time.Now()
		require.True(t, l.Allow(1))
		ctx, stop := context.WithTimeout(bg, time.Minute)
		defer stop()
		time.AfterFunc(100*ms, func() { l.SetLimit(0.001) })
		time.AfterFunc(200*ms, func() { l.SetLimit(1) })
		require.NoError(t, l.Wait(ctx))
		require.InDelta(t, 1.1, time.Since(begun).Seconds(), 0.001)
	})
}

// The scheduler of a cancelled request is busy, so the request is still in the queue. It must not make later requests fail as too
// late.
func TestADeadlineBehindACancelledRequest(t *testing.T) {
	for name, cancelled := range map[string]int{"the first": 0, "the second": 1} {
		t.Run(name, func(t *testing.T) {
			schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
				v, l := schedtest.NewVirtual(), rate.NewLimiter(rate.Every(time.Hour), 1)
				on := func(f func()) { suspend.Bind(clocked{suspend.Self(), v}, f) }
				on(func() { require.True(t, l.Allow(1)) })
				ctx, stop := schedtest.WithCancel()
				for i := range 2 {
					c := bg
					if i == cancelled {
						c = ctx
					}
					_ = s.Go(func() { on(func() { _ = l.Wait(c) }) })
				}
				schedtest.Settle()
				late, end := deadlined(v.Now().Add(150 * time.Minute))
				defer end()
				stop()
				_ = s.Go(func() {
					for range 2 {
						schedtest.Settle()
						v.Advance(time.Hour)
					}
				})
				var result error
				on(func() { result = l.Wait(late) })
				require.NoError(t, result)
			})
		})
	}
}

// A request that a smaller burst will refuse must not make later requests fail as too late.
func TestADeadlineBehindALargeRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, begun := rate.NewLimiter(1, 10), time.Now()
		require.True(t, l.Allow(10))
		for _, n := range []int{1, 10} {
			go l.WaitN(bg, n)
			synctest.Wait()
		}
		l.SetBurst(2)
		ctx, stop := context.WithTimeout(bg, 5*time.Second)
		defer stop()
		require.NoError(t, l.Wait(ctx))
		require.Equal(t, 2*time.Second, time.Since(begun).Round(ms))
	})
}

// The Park of a rude task panics or blocks after the task was resumed, for example because its scheduler has been closed.
type rude struct{ woken, then chan struct{} }

func (r rude) Park() {
	<-r.woken
	<-r.then
	panic("closed")
}
func (r rude) Unpark()                  { close(r.woken) }
func (r rude) Spawner() suspend.Spawner { return suspend.Goroutines }

// A waiting request counts in Tokens. A cancelled one does not, even if its task never runs again, and neither does one whose
// Park has panicked.
func TestTokensWithoutTheTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, cancels := range []bool{false, true} {
			for name, wait := range map[string]func(l *rate.Limiter, ctx context.Context){
				"Wait":   func(l *rate.Limiter, ctx context.Context) { _ = l.Wait(ctx) },
				"Select": func(l *rate.Limiter, ctx context.Context) { _, _ = suspend.Select(ctx, suspend.CaseOf(l.WaitOp(1))) },
			} {
				l := rate.NewLimiter(1, 1)
				require.True(t, l.Allow(1))
				ctx, stop := context.WithCancel(bg)
				then, want := make(chan struct{}), 0.
				go func() {
					defer func() { _ = recover() }()
					suspend.Bind(rude{make(chan struct{}), then}, func() { wait(l, ctx) })
				}()
				synctest.Wait()
				require.InDelta(t, -1, l.Tokens(), 1e-6)
				if cancels {
					stop()
				} else {
					time.Sleep(time.Second)
				}
				synctest.Wait()
				require.InDelta(t, want, l.Tokens(), 1e-6, name)
				close(then)
				synctest.Wait()
				require.InDelta(t, want, l.Tokens(), 1e-6, name)
				stop()
			}
		}
	})
}

// Requests whose sum overflows an int must not make Tokens positive.
func TestManyTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = math.MaxInt/2 + 1
		l := rate.NewLimiter(1, n)
		require.True(t, l.Allow(n))
		ctx, stop := context.WithCancel(bg)
		for range 2 {
			go l.WaitN(ctx, n)
		}
		synctest.Wait()
		require.Equal(t, -2*float64(n), l.Tokens())
		stop()
	})
}

// However often Tokens is called, it does not change the number of tokens by rounding.
func TestTokensChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := rate.NewLimiter(0.1, 1<<30)
		require.True(t, l.Allow(1<<29))
		for range 100_000 {
			time.Sleep(300 * time.Nanosecond)
			l.Tokens()
		}
		require.InDelta(t, 0.003, l.Tokens()-1<<29, 1e-6)
	})
}

// deadlined returns a context that has a deadline, but that only its caller ends.
func deadlined(at time.Time) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(bg)
	return deadline{ctx, at}, stop
}

type deadline struct {
	context.Context
	at time.Time
}

func (d deadline) Deadline() (time.Time, bool) { return d.at, true }

// On every scheduler, with changing bursts and Limits, each request is served, refused for a reason, or cancelled, and none is
// left.
func TestConservationWithChanges(t *testing.T) {
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		var served, large, late, cancelled atomic.Int64
		covered := func() bool { return served.Load() > 0 && large.Load() > 0 && late.Load() > 0 && cancelled.Load() > 0 }
		for round := 0; schedtest.More(round, 20, covered); round++ {
			l := rate.NewLimiter(20_000, 3)
			schedtest.Stress(t, next, 8, func(i int, rng *rand.Rand) {
				for range 6 {
					ctx, stop := schedtest.MayCancel(rng)
					if rng.IntN(3) == 0 {
						ctx = deadline{ctx, time.Now().Add(time.Duration(rng.IntN(300)) * time.Microsecond)}
					}
					switch rng.IntN(6) {
					case 0:
						l.SetBurst(1 + rng.IntN(3))
					case 1:
						l.SetLimit([]rate.Limit{10_000, 20_000, rate.Inf}[rng.IntN(3)])
					}
					switch err := l.WaitN(ctx, 1+rng.IntN(3)); {
					case err == nil:
						served.Add(1)
					case err == rate.ErrTooLarge:
						large.Add(1)
					case err == rate.ErrTooLate:
						late.Add(1)
					case ctx.Err() != nil:
						cancelled.Add(1)
					default:
						t.Error(err)
					}
					stop()
				}
			})
			require.GreaterOrEqual(t, l.Tokens(), 0., "no task waits any more")
		}
		if !covered() {
			t.Errorf("uncovered: %d served, %d too large, %d too late, %d cancelled", served.Load(), large.Load(), late.Load(), cancelled.Load())
		}
	})
}

// A case that loses, a Then that is cancelled and a case that is twice in one Select leave no request behind, on every scheduler.
func TestNoRequestIsLeft(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		l, soon := rate.NewLimiter(rate.Every(24*time.Hour), 3), rate.NewLimiter(rate.Every(time.Millisecond), 3)
		require.True(t, l.Allow(3) && soon.Allow(3))
		schedtest.Run(t, s, func() {
			for range 20 {
				won, err := suspend.Select(bg, suspend.CaseOf(l.WaitOp(1)), suspend.CaseOf(l.WaitOp(2)), suspend.CaseOf(soon.WaitOp(1)))
				require.NoError(t, err)
				require.NotNil(t, won)
				require.InDelta(t, 0, l.Tokens(), 0.1)
				_, err = suspend.Select(bg, suspend.CaseOf(soon.WaitOp(1)), suspend.CaseOf(soon.WaitOp(2)))
				require.NoError(t, err)
				ctx, stop := cancel.New(bg)
				ended := make(chan error, 1)
				suspend.Then(ctx, l.WaitOp(2), executor{}, func(_ time.Time, err error) { ended <- err })
				require.InDelta(t, -2, l.Tokens(), 0.1)
				stop(nil)
				require.ErrorIs(t, <-ended, context.Canceled)
				require.InDelta(t, 0, l.Tokens(), 0.1)
			}
			require.GreaterOrEqual(t, soon.Tokens(), 0.)
		})
	})
}

// An operator halves the burst. A waiting request that is larger fails.
func ExampleLimiter_SetBurst() {
	limit := rate.NewLimiter(rate.Every(time.Hour), 10)
	limit.SetBurst(5)
	fmt.Println(limit.Allow(6), limit.WaitN(bg, 6))
	fmt.Println(limit.Allow(5), limit.Burst())
	// Output:
	// false rate: request for more tokens than the burst
	// true 5
}

// A server tells its client when to try again.
func ExampleLimiter_Tokens() {
	limit := rate.NewLimiter(0.5, 1)
	for range 2 {
		if limit.Allow(1) {
			fmt.Println("served")
			continue
		}
		wait := (1 - limit.Tokens()) / float64(limit.Limit())
		fmt.Printf("Retry-After: %.0f\n", wait)
	}
	// Output:
	// served
	// Retry-After: 2
}

// A request that cannot be served in time fails at once, and takes no token.
func ExampleLimiter_WaitN() {
	limit := rate.NewLimiter(rate.Every(time.Hour), 1)
	limit.Allow(1)
	ctx, stop := context.WithTimeout(bg, time.Minute)
	defer stop()
	fmt.Println(limit.WaitN(ctx, 1))
	// Output: rate: the context's deadline comes before the tokens
}
