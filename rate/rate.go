// Package rate provides a rate limiter and a ticker, on the clock of the caller's scheduler. A Limiter limits the rate of events, and a
// Ticker ticks at fixed intervals. A task waits for either with a context, or in a case of a Select.
//
//	limit := rate.NewLimiter(rate.Every(100*time.Millisecond), 5) // ten events per second, bursts of five
//	if err := limit.Wait(ctx); err != nil {
//		return err // no token is consumed
//	}
//
// A Limiter follows golang.org/x/time/rate, with these differences. Limiter.Wait suspends a task and uses the scheduler's clock, so that it
// neither blocks a thread nor delays a simulation. A cancelled Wait consumes no token, so that later requests are served earlier. If the
// deadline of the context is too early, Wait does not fail at once, but waits until the deadline. SetLimit also changes the times of waiting
// requests. A negative Limit or burst panics. There are no reservations, and the burst does not change.
//
// Use a semaphore to limit the number of tasks that run simultaneously, and stage.Options.Rate to limit the rate of a stage's handlers.
package rate

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/braidgo/braid/suspend"
)

// ErrTooLarge is the error of a wait for more tokens than the Limiter's burst, unless the Limit is Inf. Split the request.
var ErrTooLarge = errors.New("rate: more tokens than the burst")

// A Limit is a number of events per second. With a Limit of 0 the bucket is not refilled, so that requests wait for a SetLimit once the
// bucket is empty.
type Limit float64

// Inf is the infinite Limit. It allows all events, even if they need more tokens than the burst.
const Inf = Limit(math.MaxFloat64)

// Every returns the Limit of one event per interval. It returns Inf if interval is not positive.
func Every(interval time.Duration) Limit {
	if interval <= 0 {
		return Inf
	}
	return Limit(time.Second) / Limit(interval)
}

// A Limiter is a token bucket. The bucket holds a limited number of tokens (the burst), is full at first, and is refilled at a fixed rate.
// Requests are served strictly in order. NewLimiter makes a Limiter, which must not be copied.
//
// All tasks that use a Limiter at the same time must have the same clock. Outside a simulation, all schedulers have the same clock. A
// suspend.Then uses the timers of its executor, since it has no task. If a Limiter meets a clock that is behind, such as that of a test in
// a bubble, it keeps its tokens and continues with this clock.
type Limiter struct {
	line
	every  float64 // nanoseconds per token, 0 for Inf, or +Inf for a Limit of 0; protected by line.guard, like tokens and last
	burst  float64 // the maximum number of tokens
	tokens float64 // the number of tokens at the time l.last; may be negative, by at most the gain of one nanosecond
	last   time.Time
	peak   time.Time // the time from which the clock has gone back to l.last; zero if it has advanced since
}

// NewLimiter returns a Limiter with a full bucket. With a burst of 0 it allows no events, unless the Limit is Inf. NewLimiter panics if
// limit or burst is negative.
func NewLimiter(limit Limit, burst int) *Limiter {
	if burst < 0 {
		panic("rate: negative burst")
	}
	l := &Limiter{every: interval(limit), burst: float64(burst), tokens: float64(burst)}
	l.line.of = l
	return l
}

// Wait takes a token. It suspends the caller until a token is available and all earlier requests are served. If ctx is done before the call
// or during the wait, Wait returns the cancellation error and takes no token. If the end of the wait races with the cancellation, either
// may win.
func (l *Limiter) Wait(ctx context.Context) error { return l.WaitN(ctx, 1) }

// WaitN takes n tokens, all of them or none, and waits for them as Wait does. If n is more than the burst, WaitN returns ErrTooLarge
// immediately, unless the Limit is Inf. It panics if n is negative.
func (l *Limiter) WaitN(ctx context.Context, n int) error {
	_, err := suspend.Wait[time.Time](ctx, l.newTurn(n))
	return err
}

// WaitOp returns an Op that performs WaitN. The caller can ignore its result.
func (l *Limiter) WaitOp(n int) suspend.Op[time.Time] {
	t := l.newTurn(n)
	return suspend.OpOf[time.Time](&t)
}

// Allow takes n tokens if they are available and no task waits, and reports whether it did. It never suspends. It panics if n is negative.
func (l *Limiter) Allow(n int) bool {
	t := l.newTurn(n)
	l.guard.Lock()
	defer l.guard.Unlock()
	_, ok, err := t.Try()
	return ok && err == nil
}

// SetLimit changes the rate. The bucket keeps its tokens. Waiting tasks are served at the new rate. SetLimit panics if limit is negative.
func (l *Limiter) SetLimit(limit Limit) {
	every := interval(limit)
	now := suspend.Now()
	l.guard.Lock()
	defer l.guard.Unlock()
	l.fill(now)
	l.every = every
	l.serveLocked()
}

func (l *Limiter) newTurn(n int) turn {
	if n < 0 {
		panic("rate: negative number of tokens")
	}
	return turn{line: &l.line, n: n}
}

func (l *Limiter) refuses(n int) error {
	if float64(n) > l.burst && l.every > 0 {
		return ErrTooLarge
	}
	return nil
}

// fill adds the tokens that have accrued between l.last and now. If the clock has gone back and returns to where it was, this time counts
// only once; otherwise a clock that goes back and forth would make tokens.
func (l *Limiter) fill(now time.Time) {
	l.goBack(now)
	if d := now.Sub(l.since(now)); d > 0 {
		l.tokens = min(l.burst, l.tokens+float64(d)/l.every)
	}
	if now.After(l.last) {
		l.last, l.peak = now, time.Time{}
	}
}

func (l *Limiter) goBack(now time.Time) {
	if now.Before(l.last) {
		if l.peak.Before(l.last) {
			l.peak = l.last
		}
		l.last = now
	}
}

// since returns the beginning of the time that counts at the time t.
func (l *Limiter) since(t time.Time) time.Time {
	if l.peak.After(l.last) && !t.Before(l.peak) {
		return l.peak
	}
	return l.last
}

func (l *Limiter) at(now time.Time, n int) time.Time {
	l.goBack(now)
	missing := float64(n) - l.tokens
	switch {
	case missing <= 0 || l.every == 0:
		return l.last
	case math.IsInf(l.every, 1):
		return never
	}
	wait := duration(missing * l.every)
	due := l.last.Add(wait)
	if due.Before(now) {
		due = now // in one step, which may be over l.peak
	}
	return l.since(due).Add(wait)
}

// never is the time of an event that is not due before a SetLimit. No Duration is long enough to reach it.
var never = time.Unix(1<<40, 0)

func (l *Limiter) spend(now time.Time, n int) {
	l.fill(now)
	if l.tokens -= float64(n); l.every == 0 {
		l.tokens = l.burst
	}
}

// interval returns the number of nanoseconds per token, 0 for Inf, and +Inf for 0. It panics if limit is negative or not a number.
func interval(limit Limit) float64 {
	switch {
	case !(limit >= 0):
		panic("rate: negative Limit")
	case limit == Inf:
		return 0
	}
	return float64(time.Second) / math.Abs(float64(limit)) // 1/-0 is negative
}

// duration converts nanoseconds to a Duration, and clamps large values.
func duration(ns float64) time.Duration {
	const most = 1 << 62
	return time.Duration(min(ns, most))
}
