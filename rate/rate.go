// Package rate provides a rate limiter and a ticker, on the clock of the caller's scheduler. A Limiter is a bucket of tokens, which is
// refilled at a fixed rate: an event takes a token, or waits for one. A Ticker ticks at fixed intervals. A task waits for either with a
// context, or in a case of a Select.
//
//	limit := rate.NewLimiter(rate.Every(100*time.Millisecond), 5) // ten events per second, bursts of five
//	if err := limit.Wait(ctx); err != nil {
//		return err // no token is consumed
//	}
//
// A Limiter follows golang.org/x/time/rate: Inf, Limits and bursts of zero, SetLimit, SetBurst, Tokens, and a WaitN that fails at once
// if the deadline of its context comes too early. It differs in the following points.
//
// Limiter.Wait suspends a task and uses the scheduler's clock, so that it neither blocks a thread nor delays a simulation. Hence no method
// has a time as its argument. SetLimit and SetBurst also apply to the requests that wait. A cancelled Wait consumes no token, so that later
// requests are served earlier. There is no Reserve: as later calls can change the time of a waiting request, no method could return this
// time. Use WaitOp, in a Select or a Then. While the Limit is 0, WaitN waits for a SetLimit instead of failing, even if its context has a
// deadline. A negative Limit, burst or n panics, and a Limiter must be made by NewLimiter.
//
// Use a semaphore to limit the number of tasks that run simultaneously, and stage.Options.Rate to limit the rate of a stage's handlers.
package rate

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend"
)

// ErrTooLarge is the error of a wait for more tokens than the Limiter's burst, unless the Limit is Inf. Split the request.
var ErrTooLarge = errors.New("rate: request for more tokens than the burst")

// ErrTooLate is the error of a wait that would last longer than the deadline of its context allows. It wraps context.DeadlineExceeded,
// although the context has not ended. Shed the request, or try again later.
var ErrTooLate = outcome.Named("rate: the context's deadline comes before the tokens", context.DeadlineExceeded)

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
// Requests are served strictly in order. The zero Limiter has a Limit and a burst of 0, and refuses all requests. A Limiter must not be
// copied.
//
// All tasks that use a Limiter at the same time must have the same clock. Outside a simulation, all schedulers have the same clock. A
// suspend.Then uses the timers of its executor, since it has no task. If a Limiter meets a clock that is behind, such as that of a test in
// a bubble, it keeps its tokens and continues with this clock.
type Limiter struct {
	line
	limit  Limit   // protected by line.guard, like all fields below
	burst  int     // the maximum number of tokens
	tokens float64 // the number of tokens at the time clock.last; may be negative, by at most the gain of one nanosecond
	clock
}

// NewLimiter returns a Limiter with a full bucket. With a burst of 0 it allows no events, unless the Limit is Inf. NewLimiter panics if
// limit or burst is negative, or limit is NaN. A limit of math.Inf(1) is Inf.
func NewLimiter(limit Limit, burst int) *Limiter {
	return &Limiter{limit: checkedLimit(limit), burst: checked(burst), tokens: float64(burst)}
}

// Wait takes a token. It suspends the caller until a token is available and all earlier requests are served. If ctx is done before the call
// or during the wait, Wait returns the cancellation error and takes no token. If the end of the wait races with the cancellation, either
// may win.
func (l *Limiter) Wait(ctx context.Context) error { return l.WaitN(ctx, 1) }

// WaitN takes n tokens, all of them or none, and waits for them as Wait does. It panics if n is negative.
//
// If n is more than the burst, WaitN returns ErrTooLarge immediately, unless the Limit is Inf. If SetBurst makes the burst smaller than n
// during the wait, WaitN returns ErrTooLarge when its request is the first.
//
// If the tokens are due after the deadline of ctx, WaitN returns ErrTooLate immediately, and takes no token. It assumes that the Limit
// does not change, and that no earlier request gives up. WaitN does not fail in this way later, when it already waits, nor while the Limit
// is 0. The time that the call takes is proportional to the number of earlier requests that are due before the deadline.
func (l *Limiter) WaitN(ctx context.Context, n int) error {
	t := l.newTurn(n)
	t.deadline, _ = ctx.Deadline()
	_, err := suspend.Wait[time.Time](ctx, t)
	return err
}

// WaitOp returns an Op that performs WaitN, but never fails with ErrTooLate. The caller can ignore its result.
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

// SetLimit changes the rate. The bucket keeps its tokens. Waiting requests are served at the new rate. SetLimit never suspends. It panics if
// limit is negative or NaN.
func (l *Limiter) SetLimit(limit Limit) {
	limit = checkedLimit(limit)
	l.change(func() { l.limit = limit })
}

// SetBurst changes the burst. If the bucket has more tokens than the new burst, the rest is lost. A larger burst adds no tokens. A waiting
// request for more tokens than the new burst fails with ErrTooLarge when it is the first. SetBurst never suspends. It panics if burst is
// negative.
func (l *Limiter) SetBurst(burst int) {
	checked(burst)
	l.change(func() { l.burst, l.tokens = burst, min(l.tokens, float64(burst)) })
}

// change calls set for a bucket that is up to date, and then serves the waiters.
func (l *Limiter) change(set func()) {
	now := suspend.Now()
	l.guard.Lock()
	defer l.guard.Unlock()
	l.fill(now)
	set()
	l.serveLocked()
}

// Limit returns the Limit. It never suspends.
func (l *Limiter) Limit() Limit {
	l.guard.Lock()
	defer l.guard.Unlock()
	return l.limit
}

// Burst returns the burst. It never suspends.
func (l *Limiter) Burst() int {
	l.guard.Lock()
	defer l.guard.Unlock()
	return l.burst
}

// Tokens returns the number of tokens in the bucket, minus those for which tasks wait, so that it may be negative. A request for n tokens
// must wait until the bucket has got n - Tokens() more. Neither a cancelled request counts nor one that is larger than the burst. Tokens never
// suspends. The time that it takes is proportional to the number of requests that wait.
func (l *Limiter) Tokens() float64 {
	now := suspend.Now()
	l.guard.Lock()
	defer l.guard.Unlock()
	l.dropEndedLocked()
	return l.filled(now) - l.wantedLocked()
}

func (l *Limiter) newTurn(n int) turn {
	if n < 0 {
		panic("rate: negative number of tokens")
	}
	return turn{line: &l.line, pace: l, n: n}
}

func (l *Limiter) refuses(n int) error {
	if n > l.burst && l.limit < Inf {
		return ErrTooLarge
	}
	return nil
}

// checked returns burst. It panics if burst is negative.
func checked(burst int) int {
	if burst < 0 {
		panic("rate: negative burst")
	}
	return burst
}

// checkedLimit returns limit, and Inf for math.Inf(1). It panics if limit is negative or not a number.
func checkedLimit(limit Limit) Limit {
	switch {
	case limit != limit:
		panic("rate: the Limit is NaN")
	case limit < 0:
		panic("rate: negative Limit")
	}
	return min(limit, Inf)
}
