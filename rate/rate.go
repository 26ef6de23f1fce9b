// Package rate bounds how often something happens: a Limiter lets events through at a rate, and a Ticker yields the
// times at which an event is due. Both are waited for with a context, or as a case of a Select, by the clock of the
// caller's scheduler.
//
//	limit := rate.NewLimiter(rate.Every(100*time.Millisecond), 5) // ten a second, and five at once
//	if err := limit.Wait(ctx); err != nil {
//		return err // no token is used up
//	}
//
// The semantics follow golang.org/x/time/rate, with three differences. Its Wait blocks the thread of a scheduler, and
// takes package time's clock, so that a simulation has to wait. A Wait that is cancelled here has taken nothing, so
// that later requests come earlier. And a Wait whose deadline comes first waits for it.
//
// Use a semaphore to bound how many run simultaneously, and stage.Options.Rate for the handlers of a stage.
package rate

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/braidgo/braid/suspend"
)

// ErrTooLarge is the error of a wait for more tokens than the burst of its Limiter. Split such a request.
var ErrTooLarge = errors.New("rate: more tokens than the burst")

// A Limit is a number of events in a second.
type Limit float64

// Inf is the Limit that lets everything through.
const Inf = Limit(math.MaxFloat64)

// Every returns the Limit of one event in each interval.
func Every(interval time.Duration) Limit {
	if interval <= 0 {
		return Inf
	}
	return Limit(time.Second) / Limit(interval)
}

// A Limiter is a bucket of tokens, which is full at first, holds a burst of them, and is filled at a rate. Requests are served strictly in
// order. NewLimiter makes a Limiter, and it must not be copied.
//
// The tasks of one Limiter must have the same clock, as all schedulers have except in a simulation. A Then
// waits by the timers of its executor.
type Limiter struct {
	line
	every  float64 // nanoseconds for a token; the fields are under the guard
	burst  float64 // tokens, at most
	tokens float64 // the tokens at the time last; below 0 by at most the gain of a nanosecond
	last   time.Time
}

// NewLimiter returns a Limiter with a full bucket. It panics if limit or burst is not positive.
func NewLimiter(limit Limit, burst int) *Limiter {
	if burst < 1 {
		panic("rate: Limiter without a burst")
	}
	l := &Limiter{every: interval(limit), burst: float64(burst), tokens: float64(burst)}
	l.line.of = l
	return l
}

// Wait takes a token. It suspends the caller until there is one and all earlier requests are served. If ctx is done first, or already, it
// returns the cancellation error and has taken nothing. If a token and the cancellation meet, either may win.
func (l *Limiter) Wait(ctx context.Context) error { return l.WaitN(ctx, 1) }

// WaitN takes n tokens, all of them or none, as Wait does one. If n is more than the burst, it returns ErrTooLarge immediately. It panics if
// n is negative.
func (l *Limiter) WaitN(ctx context.Context, n int) error {
	_, err := suspend.Wait[time.Time](ctx, l.turn(n), false)
	return err
}

// WaitOp is WaitN as an Op. Its result is of no interest.
func (l *Limiter) WaitOp(n int) suspend.Op[time.Time] {
	t := l.turn(n)
	return suspend.OpOf[time.Time](&t)
}

// Allow takes n tokens if they are there and no task waits, and reports whether it did. It never suspends, and panics if n is negative.
func (l *Limiter) Allow(n int) bool {
	t := l.turn(n)
	l.guard.Lock()
	defer l.guard.Unlock()
	_, ok, err := t.Try()
	return ok && err == nil
}

// SetLimit changes the rate. The tokens that are there stay, and tasks that wait come earlier, or later. It panics if limit is not positive.
func (l *Limiter) SetLimit(limit Limit) {
	every := interval(limit)
	now := suspend.Now()
	l.guard.Lock()
	defer l.guard.Unlock()
	l.fill(now)
	l.every = every
	l.serveLocked()
}

func (l *Limiter) turn(n int) turn {
	if n < 0 {
		panic("rate: negative number of tokens")
	}
	t := turn{line: &l.line, n: n}
	if float64(n) > l.burst {
		t.err = ErrTooLarge
	}
	return t
}

// fill fills the bucket up to now.
func (l *Limiter) fill(now time.Time) {
	if d := now.Sub(l.last); d > 0 {
		l.tokens, l.last = min(l.burst, l.tokens+float64(d)/l.every), now
	}
}

func (l *Limiter) at(_ time.Time, n int) time.Time {
	if missing := float64(n) - l.tokens; missing > 0 {
		return l.last.Add(duration(missing * l.every))
	}
	return l.last
}

func (l *Limiter) take(now time.Time, n int) {
	l.fill(now)
	if l.tokens -= float64(n); l.every == 0 {
		l.tokens = l.burst
	}
}

// interval returns the nanoseconds for a token.
func interval(limit Limit) float64 {
	switch {
	case !(limit > 0):
		panic("rate: Limit that is not positive")
	case limit == Inf:
		return 0
	}
	return float64(time.Second) / float64(limit)
}

// duration converts nanoseconds, and cuts off what does not fit.
func duration(ns float64) time.Duration {
	const most = 1 << 62
	return time.Duration(min(ns, most))
}
