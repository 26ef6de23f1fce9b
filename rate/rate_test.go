package rate_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/rate"
	"github.com/braidgo/braid/suspend"
)

func TestMain(m *testing.M) { schedtest.Main(m) }

var bg = context.Background()

const ms = time.Millisecond

// A bucket is the model of a Limiter. Its unit of time is half a millisecond, in which rate parts are added; a token has 2000
// parts.
type bucket struct{ parts, burst, rate, at int }

// serve returns the time at which a request for n tokens that comes at the time come gets them.
func (b *bucket) serve(come, n int) (at int) {
	b.fill(come)
	b.fill(b.at + max(0, n*2000-b.parts)/b.rate)
	b.parts -= n * 2000
	return b.at
}

func (b *bucket) fill(to int) {
	if to > b.at {
		b.parts, b.at = min(b.burst*2000, b.parts+(to-b.at)*b.rate), to
	}
}

// Each request is served at the moment at which a bucket that serves in order would serve it. A cancelled request takes no token.
func TestAgainstABucket(t *testing.T) {
	type request struct {
		come, gone, n int  // gone is 0 if the request is not cancelled
		knows         bool // the context has a deadline, so the request fails at once if it would be cancelled
	}
	rapid.Check(t, func(rt *rapid.T) {
		b := bucket{rate: rapid.SampledFrom([]int{1, 10, 100, 500, 1000}).Draw(rt, "rate"), burst: rapid.IntRange(1, 5).Draw(rt, "burst")}
		b.parts = b.burst * 2000
		var requests []request
		come := 0
		for range rapid.IntRange(1, 8).Draw(rt, "requests") {
			come += 2 * rapid.IntRange(1, 3000).Draw(rt, "after")
			r := request{come, 0, rapid.IntRange(0, b.burst).Draw(rt, "n"), rapid.Bool().Draw(rt, "knows")}
			if rapid.Bool().Draw(rt, "leaves") {
				r.gone = come + 2*rapid.IntRange(1, 3000).Draw(rt, "leaves after") + 1
			}
			requests = append(requests, r)
		}
		served := make([]int, len(requests))
		synctest.Test(t, func(t *testing.T) {
			begun, l := time.Now(), rate.NewLimiter(rate.Limit(b.rate), b.burst)
			var all sync.WaitGroup
			defer all.Wait()
			for i, r := range requests {
				all.Go(func() {
					time.Sleep(time.Duration(r.come) * ms / 2)
					ctx, cancel := context.WithCancel(bg)
					if leaves := time.Duration(r.gone-r.come) * ms / 2; r.gone > 0 && r.knows {
						ctx, cancel = context.WithTimeout(bg, leaves)
					} else if r.gone > 0 {
						time.AfterFunc(leaves, cancel)
					}
					defer cancel()
					served[i] = -1
					if err := l.WaitN(ctx, r.n); err == nil {
						served[i] = int((time.Since(begun) + ms/100) / (ms / 2))
					} else if r.knows && (!errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, rate.ErrTooLate)) || !r.knows && !errors.Is(err, context.Canceled) {
						panic(err)
					}
				})
			}
		})
		full := b
		// expected returns the time at which a request for n tokens that comes now would be served if no earlier request leaves.
		expected := func(before []request, now, n int) int {
			b := full
			for j, r := range before {
				if served[j] >= 0 || r.gone > now && !r.knows {
					b.serve(r.come, r.n)
				} else if !r.knows {
					b.fill(r.gone)
				}
			}
			return b.serve(now, n)
		}
		for i, r := range requests {
			next, want := b, -1
			switch at := next.serve(r.come, r.n); {
			case r.knows && r.gone > 0 && expected(requests[:i], r.come, r.n) > r.gone: // the request does not wait
			case r.gone == 0 || at < r.gone:
				b, want = next, at
			case at == r.gone:
				return // either may win
			case !r.knows:
				b.fill(r.gone) // later requests have waited for this one
			}
			if served[i] != want {
				rt.Fatalf("%d of %v was served at %d, and not %d", i, requests, served[i], want)
			}
		}
	})
}

// On a virtual clock, nothing happens between two moments.
func TestVirtualTime(t *testing.T) {
	v := schedtest.NewVirtual()
	l, ticks := rate.NewLimiter(rate.Every(time.Minute), 1), rate.NewTicker(time.Hour, rate.Skip)
	var passed, ticked atomic.Int32
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	begun := v.Now()
	v.Bind(func() { require.NoError(t, l.Wait(bg)) })
	waits := func(n int) {
		schedtest.Eventually(t, "the timers", func() bool { return v.Timers() == n })
	}
	_ = v.Go(func() {
		for l.Wait(ctx) == nil {
			passed.Add(1)
		}
	})
	waits(1)
	_ = v.Go(func() {
		for due := range ticks.All(ctx) {
			if due.Sub(begun) != time.Duration(ticked.Add(1))*time.Hour {
				t.Error(due)
			}
		}
	})
	for i := range 120 {
		waits(2)
		require.EqualValues(t, i, passed.Load())
		require.EqualValues(t, i/60, ticked.Load())
		v.Advance(time.Minute)
		schedtest.Eventually(t, "a token", func() bool { return int(passed.Load()) == i+1 && int(ticked.Load()) == (i+1)/60 })
	}
	cancel()
	waits(0)
}

// A clocked task of fifo uses the clock of a Virtual.
type clocked struct {
	suspend.Task
	v *schedtest.Virtual
}

func (c clocked) Spawner() suspend.Spawner { return c.v }

// The time of the first waiter comes when the waiter has been cancelled but has not left the queue yet. The second gets its token.
func TestATokenForACancelledWaiter(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		v, l := schedtest.NewVirtual(), rate.NewLimiter(rate.Every(time.Hour), 1)
		on := func(f func()) { suspend.Bind(clocked{suspend.Self(), v}, f) }
		on(func() { require.True(t, l.Allow(1)) })
		ctx, cancel := schedtest.WithCancel()
		errs := []error{nil, errors.New("none")}
		for i, ctx := range []context.Context{ctx, bg} {
			_ = s.Go(func() { on(func() { errs[i] = l.Wait(ctx) }) })
		}
		schedtest.Settle()
		cancel()
		v.Advance(time.Hour)
		schedtest.Settle()
		require.ErrorIs(t, errs[0], context.Canceled)
		require.NoError(t, errs[1])
		require.Zero(t, v.Timers())
	})
}

// The first waits for five tokens, and leaves. The second has already waited long enough for its single token, and must not wait
// for the time of the first. The first leaves because its context ends, or because another case of its Select has won.
func TestAFirstWaiterThatLeaves(t *testing.T) {
	for name, waits := range map[string]func(ctx context.Context, l *rate.Limiter, other *promise.Promise[int]) error{
		"context": func(ctx context.Context, l *rate.Limiter, _ *promise.Promise[int]) error { return l.WaitN(ctx, 5) },
		"Select": func(ctx context.Context, l *rate.Limiter, other *promise.Promise[int]) error {
			_, err := suspend.Select(bg, suspend.CaseOf(l.WaitOp(5)), suspend.CaseOf(other.AwaitOp()))
			return errors.Join(err, ctx.Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
				v, l := schedtest.NewVirtual(), rate.NewLimiter(rate.Every(time.Hour), 5)
				on := func(f func()) { suspend.Bind(clocked{suspend.Self(), v}, f) }
				on(func() { require.True(t, l.Allow(5)) })
				ctx, cancel := schedtest.WithCancel()
				other := promise.New[int]()
				first, second := errors.New("none"), errors.New("none")
				_ = s.Go(func() { on(func() { first = waits(ctx, l, other) }) })
				_ = s.Go(func() { on(func() { second = l.Wait(bg) }) })
				schedtest.Settle()
				if name == "Select" {
					_ = other.Fill(1)
				}
				cancel()
				schedtest.Settle()
				require.ErrorIs(t, first, context.Canceled)
				v.Advance(time.Hour)
				schedtest.Settle()
				require.NoError(t, second)
				require.Zero(t, v.Timers())
			})
		})
	}
}

func TestTickerIsLate(t *testing.T) {
	for _, c := range []struct {
		policy rate.Policy
		second time.Duration   // the time at which the wait for the second tick begins
		want   []time.Duration // in seconds
	}{
		{rate.Skip, 3500 * ms, []time.Duration{1, 2, 4, 5}},
		{rate.Skip, 4000 * ms, []time.Duration{1, 2, 5, 6}}, // one tick at 4, not two
		{rate.Skip, 3000 * ms, []time.Duration{1, 2, 4, 5}}, // one tick at 3, not two
		{rate.CatchUp, 3500 * ms, []time.Duration{1, 2, 3, 4}},
	} {
		synctest.Test(t, func(t *testing.T) {
			ticks, begun := rate.NewTicker(time.Second, c.policy), time.Now()
			for i, want := range c.want {
				due, err := ticks.Tick(bg)
				require.NoError(t, err)
				require.Equal(t, want*time.Second, due.Sub(begun))
				require.Equal(t, max(want*time.Second, time.Duration(min(i, 1))*c.second), time.Since(begun))
				if i == 0 {
					time.Sleep(c.second - time.Second)
				}
			}
			ctx, cancel := context.WithCancel(bg)
			cancel()
			for range ticks.All(ctx) {
				t.Error("a tick")
			}
		})
	}
}

// A change of the rate keeps the tokens, and changes the times at which waiters are served.
func TestSetLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, begun := rate.NewLimiter(rate.Every(time.Hour), 2), time.Now()
		require.True(t, l.Allow(2))
		time.Sleep(30 * time.Minute) // adds half a token
		var at [2]time.Duration
		var all sync.WaitGroup
		for i := range at {
			all.Go(func() {
				require.NoError(t, l.Wait(bg))
				at[i] = time.Since(begun).Round(ms)
			})
			synctest.Wait()
		}
		require.False(t, l.Allow(0), "others wait")
		l.SetLimit(rate.Every(time.Minute))
		all.Wait()
		require.Equal(t, [2]time.Duration{30*time.Minute + 30*time.Second, 31*time.Minute + 30*time.Second}, at)
		l.SetLimit(rate.Inf)
		for range 1000 {
			require.True(t, l.Allow(2))
		}
		time.Sleep(time.Nanosecond)
		l.SetLimit(rate.Every(time.Hour))
		require.True(t, l.Allow(2), "the bucket was full")
		require.False(t, l.Allow(1))
	})
}

func TestErrorsAndPanics(t *testing.T) {
	l := rate.NewLimiter(1, 2)
	require.Equal(t, rate.ErrTooLarge, l.WaitN(bg, 3))
	_, err := suspend.Do(bg, l.WaitOp(3))
	require.Equal(t, rate.ErrTooLarge, err)
	require.False(t, l.Allow(3))
	require.True(t, l.Allow(2))
	require.Equal(t, rate.Inf, rate.Every(0))
	schedtest.Panics(t, "rate: negative number of tokens", func() { l.Allow(-1) })
	schedtest.Panics(t, "rate: negative burst", func() { rate.NewLimiter(1, -1) })
	schedtest.Panics(t, "rate: negative burst", func() { l.SetBurst(-1) })
	require.Equal(t, 2, l.Burst())
	require.Equal(t, rate.Inf, rate.NewLimiter(rate.Limit(math.Inf(1)), 1).Limit())
	schedtest.Panics(t, "rate: negative Limit", func() { rate.NewLimiter(-1, 1) })
	schedtest.Panics(t, "rate: the Limit is NaN", func() { l.SetLimit(rate.Limit(math.NaN())) })
	schedtest.Panics(t, "rate: NewTicker with an interval that is not positive", func() { rate.NewTicker(0, rate.Skip) })
	schedtest.Panics(t, "rate: unknown Policy", func() { rate.NewTicker(1, 2) })
}

// Inf allows more than the burst, as in x/time/rate.
func TestInf(t *testing.T) {
	for _, l := range []*rate.Limiter{rate.NewLimiter(rate.Inf, 0), rate.NewLimiter(rate.Every(0), 1), rate.NewLimiter(rate.Limit(math.Inf(1)), 1), rate.NewLimiter(1, 2)} {
		op := l.WaitOp(5)
		l.SetLimit(rate.Inf)
		require.NoError(t, l.WaitN(bg, 5))
		require.True(t, l.Allow(math.MaxInt))
		_, err := suspend.Do(bg, op)
		require.NoError(t, err, "made before the SetLimit")
		op = l.WaitOp(5)
		l.SetLimit(1)
		require.Equal(t, rate.ErrTooLarge, l.WaitN(bg, 5))
		_, err = suspend.Do(bg, op)
		require.Equal(t, rate.ErrTooLarge, err, "made before the SetLimit")
		require.False(t, l.Allow(3))
	}
}

// A Limit of 0 allows the burst, and then nothing until a SetLimit. With a burst of 0 it allows nothing.
func TestPause(t *testing.T) {
	v := schedtest.NewVirtual()
	v.Bind(func() {
		for _, zero := range []rate.Limit{0, rate.Limit(math.Copysign(0, -1))} {
			l := rate.NewLimiter(zero, 2)
			require.True(t, l.Allow(2))
			require.False(t, l.Allow(1))
			ended := promise.Go(bg, v, func(ctx context.Context) (time.Time, error) { return suspend.Now(), l.Wait(ctx) })
			schedtest.Eventually(t, "a wait", func() bool { return !l.Allow(0) })
			v.Advance(100 * 365 * 24 * time.Hour)
			require.Zero(t, v.Timers(), "a bubble or a World would advance to it")
			_, over, _ := ended.Try()
			require.False(t, over)
			l.SetLimit(rate.Every(time.Minute))
			require.Equal(t, 1, v.Timers())
			l.SetLimit(zero)
			require.Zero(t, v.Timers())
			l.SetLimit(rate.Every(time.Minute))
			v.Advance(time.Minute)
			_, err := ended.Await(bg)
			require.NoError(t, err)
		}
		none := rate.NewLimiter(1, 0)
		require.False(t, none.Allow(1))
		require.True(t, none.Allow(0))
		require.Equal(t, rate.ErrTooLarge, none.Wait(bg))
	})
}

var (
	ofThePackage  = rate.NewLimiter(rate.Every(time.Second), 3)
	tickerOfThose = rate.NewTicker(time.Minute, rate.Skip)
)

// A Limiter and a Ticker were used in real time, and are then used in a bubble, whose clock begins in the year 2000. They must
// not wait for decades.
func TestInABubbleAfterwards(t *testing.T) {
	require.True(t, ofThePackage.Allow(3))
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			for ofThePackage.Allow(1) { // in the second bubble, these are tokens of the first
			}
			begun := time.Now()
			for range 5 {
				require.NoError(t, ofThePackage.Wait(bg))
			}
			require.Equal(t, 5*time.Second, time.Since(begun))
			begun = time.Now()
			for range 3 {
				_, err := tickerOfThose.Tick(bg)
				require.NoError(t, err)
			}
			require.Equal(t, 3*time.Minute, time.Since(begun))
		})
	}
}

// A clock that goes back and forth adds no tokens, although the same time passes several times. Once it continues past its latest
// time, the time counts.
func TestAClockThatGoesBack(t *testing.T) {
	v := schedtest.NewVirtual()
	v.Bind(func() {
		l, got := rate.NewLimiter(10, 5), 0
		for range 1000 {
			v.Advance(10 * time.Second)
			for l.Allow(1) {
				got++
			}
			v.Advance(-10 * time.Second)
			require.False(t, l.Allow(1))
		}
		require.Equal(t, 5, got, "the burst")
		for range 3 {
			v.Advance(100 * ms)
			require.True(t, l.Allow(1))
			require.False(t, l.Allow(1))
		}
		l = rate.NewLimiter(1, 100)
		require.True(t, l.Allow(100))
		v.Advance(-time.Minute)
		require.False(t, l.Allow(1))
		v.Advance(10 * time.Second)
		require.True(t, l.Allow(10), "the clock continues from the time to which it went back")
		v.Advance(60 * time.Second) // passes the time from which it went back
		require.True(t, l.Allow(60))
		require.False(t, l.Allow(1))

		l = rate.NewLimiter(10, 5)
		require.True(t, l.Allow(5))
		v.Advance(-time.Hour)
		for range 3 {
			ended := promise.Go(bg, v, func(ctx context.Context) (int, error) { return 1, l.Wait(ctx) })
			schedtest.Eventually(t, "the timer", func() bool { return v.Timers() == 1 })
			v.Advance(100 * ms)
			_, err := ended.Await(bg)
			require.NoError(t, err)
		}
	})
}

// The first tick is due one interval after the Ticker was made, like that of a time.Ticker.
func TestTheFirstTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ticker, begun := rate.NewTicker(time.Minute, rate.Skip), time.Now()
		time.Sleep(40 * time.Second)
		due, err := ticker.Tick(bg)
		require.NoError(t, err)
		require.Equal(t, time.Minute, time.Since(begun))
		require.Equal(t, time.Now(), due)
	})
}

// On every scheduler, no more requests get through than the rate allows. All requests that were not cancelled get through.
func TestConservation(t *testing.T) {
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		var passed, failed atomic.Int64
		covered := func() bool { return passed.Load() > 0 && failed.Load() > 0 }
		for round := 0; schedtest.More(round, 30, covered); round++ {
			l, begun := rate.NewLimiter(20_000, 3), time.Now()
			var took atomic.Int64
			schedtest.Stress(t, next, 8, func(i int, rng *rand.Rand) {
				for k := range 4 {
					ctx, cancel := schedtest.MayCancel(rng)
					n := 1 + k%2
					err := l.WaitN(ctx, n)
					if err != nil && k == 3 {
						err = l.WaitN(bg, n)
					}
					cancel()
					if err == nil {
						passed.Add(1)
						took.Add(int64(n))
					} else {
						failed.Add(1)
					}
				}
			})
			if most := 3 + time.Since(begun).Seconds()*20_000 + 0.01; float64(took.Load()) > most {
				t.Errorf("%d tokens of %.2f", took.Load(), most)
			}
			require.GreaterOrEqual(t, l.Tokens(), 0., "no task waits any more")
		}
	})
}

func TestAllocs(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		l := rate.NewLimiter(rate.Inf, 1)
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		slow, ticker := rate.NewLimiter(rate.Every(time.Microsecond), 1), rate.NewTicker(time.Microsecond, rate.Skip)
		for name, c := range map[string]struct {
			most float64
			f    func()
		}{
			"free": {0, func() { _ = l.Wait(ctx); l.Allow(1) }},
			// The allocations are the function of the timer, the function that stops it, and the sleep of the scheduler, if any.
			"a wait": {3, func() { _ = slow.Wait(ctx) }},
			"a tick": {3, func() { _, _ = ticker.Tick(ctx) }},
		} {
			if got := testing.AllocsPerRun(100, c.f); got > c.most {
				t.Errorf("%s: %v allocations", name, got)
			}
		}
	})
}

func ExampleLimiter() {
	limit := rate.NewLimiter(rate.Every(time.Millisecond), 2)
	for i := range 3 { // two run at once, and the third a millisecond later
		fmt.Println(i, limit.Wait(bg))
	}
	// Output:
	// 0 <nil>
	// 1 <nil>
	// 2 <nil>
}

func ExampleLimiter_WaitOp() {
	limit := rate.NewLimiter(rate.Every(time.Hour), 1)
	limit.Allow(1)
	token, late := suspend.CaseOf(limit.WaitOp(1)), suspend.CaseOf(suspend.After(time.Millisecond))
	won, _ := suspend.Select(bg, token, late)
	fmt.Println(won == late) // the next request gets the token
	// Output: true
}

func ExampleLimiter_SetLimit() {
	limit := rate.NewLimiter(rate.Every(time.Hour), 1)
	limit.Allow(1)
	go limit.SetLimit(rate.Inf)
	fmt.Println(limit.WaitN(bg, 1))
	// Output: <nil>
}

func ExampleTicker() {
	ticks, n := rate.NewTicker(time.Millisecond, rate.CatchUp), 0
	first, _ := ticks.Tick(bg)
	for due := range ticks.All(bg) {
		if n++; n == 3 {
			fmt.Println(due.Sub(first))
			break
		}
	}
	// Output: 3ms
}

func ExampleTicker_TickOp() {
	tick, stop := suspend.CaseOf(rate.NewTicker(time.Millisecond, rate.Skip).TickOp()), suspend.CaseOf(suspend.After(time.Hour))
	won, _ := suspend.Select(bg, tick, stop)
	fmt.Println(won == tick)
	// Output: true
}

// The zero Limiter behaves like the zero Limiter of x/time.
func TestTheZeroLimiter(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, _ suspend.Spawner) {
		l := new(rate.Limiter)
		require.False(t, l.Allow(1))
		require.True(t, l.Allow(0))
		require.Equal(t, rate.ErrTooLarge, l.Wait(bg))
		_, err := suspend.Do(bg, l.WaitOp(1))
		require.Equal(t, rate.ErrTooLarge, err)
		require.Zero(t, l.Limit())
		require.Zero(t, l.Tokens())

		l.SetBurst(2)
		require.False(t, l.Allow(1), "the bucket is empty")
		waiting := promise.Go(bg, suspend.Here(), func(ctx context.Context) (int, error) { return 1, l.WaitN(ctx, 2) })
		for l.Tokens() != -2 {
			_ = suspend.Sleep(bg, time.Millisecond)
		}
		l.SetLimit(rate.Inf)
		_, err = waiting.Await(bg)
		require.NoError(t, err)
	})
	ticker := new(rate.Ticker)
	require.PanicsWithValue(t, "rate: wait for the zero Ticker", func() { _, _ = ticker.Tick(bg) })
	require.PanicsWithValue(t, "rate: wait for the zero Ticker", func() { ticker.TickOp() })
}
