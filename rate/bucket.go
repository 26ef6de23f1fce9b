package rate

import (
	"math"
	"time"
)

// The bucket of a Limiter has l.tokens tokens at the time l.last, and never more than the burst. The method at returns when it has enough
// for a request. Then spend takes the tokens, after fill has added those that have accrued since l.last. What counts as time is decided
// in clock.go.

// fill adds the tokens that have accrued between l.last and now.
func (l *Limiter) fill(now time.Time) {
	l.goBack(now)
	l.tokens = l.filled(now)
	l.advance(now)
}

// filled returns the number of tokens in the bucket at the time now.
func (l *Limiter) filled(now time.Time) float64 {
	if d := now.Sub(l.since(now)); d > 0 {
		return min(float64(l.burst), l.tokens+float64(d)/interval(l.limit))
	}
	return l.tokens
}

// at returns the time at which the bucket has n tokens, or never. It may be before now.
func (l *Limiter) at(now time.Time, n float64) time.Time {
	l.goBack(now)
	missing := n - l.tokens
	switch {
	case missing <= 0 || l.limit == Inf:
		return l.last
	case l.limit == 0:
		return never
	}
	wait := duration(missing * interval(l.limit))
	return l.dueAfter(now, wait)
}

// never is the time of an event that is not due before a SetLimit. No Duration is long enough to reach it.
var never = time.Unix(1<<40, 0)

func (l *Limiter) spend(now time.Time, n int) {
	if l.fill(now); l.limit < Inf {
		l.tokens -= float64(n)
	}
}

// interval returns the number of nanoseconds per token, 0 for Inf, and +Inf for 0.
func interval(limit Limit) float64 {
	if limit == Inf {
		return 0
	}
	return float64(time.Second) / math.Abs(float64(limit)) // 1/-0 is negative
}

// duration converts nanoseconds to a Duration, and clamps large values.
func duration(ns float64) time.Duration {
	const most = 1 << 62
	return time.Duration(min(ns, most))
}
