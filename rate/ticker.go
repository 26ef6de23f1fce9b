package rate

import (
	"context"
	"iter"
	"time"

	"github.com/braidgo/braid/suspend"
)

// A Policy decides what happens to ticks that are due while no task waits.
type Policy int

const (
	Skip    Policy = iota // the first late tick is delivered at once, and all further ticks up to now are dropped
	CatchUp               // each late tick is delivered at once, in order
)

// A Ticker ticks at fixed intervals. It has no goroutine, and has a timer only while a task waits. Each tick goes to one of the waiting
// tasks. As with a Limiter, all these tasks must have the same clock. NewTicker makes a Ticker, which must not be copied.
//
//	for due := range rate.NewTicker(time.Minute, rate.Skip).All(ctx) {
//		report(due)
//	}
//	return suspend.Err(ctx)
//
// A time.Ticker also drops ticks for a slow reader, but a task that waits for its channel blocks the scheduler.
type Ticker struct {
	line
	every  time.Duration
	policy Policy
	next   time.Time
}

// NewTicker returns a Ticker with the given interval. The first tick is due one interval later. If a wait has a clock that has gone
// back, as in a test whose Ticker is a package variable, its tick is due one interval after the wait has begun. NewTicker panics if the
// interval is not positive, or the policy is unknown.
func NewTicker(every time.Duration, policy Policy) *Ticker {
	switch {
	case every <= 0:
		panic("rate: NewTicker with an interval that is not positive")
	case policy != Skip && policy != CatchUp:
		panic("rate: unknown Policy")
	}
	return &Ticker{every: every, policy: policy, next: suspend.Now().Add(every)}
}

// Tick suspends the caller until the next tick is due, and returns the time at which the tick was due. If ctx is done before the call or
// during the wait, Tick returns the cancellation error and consumes no tick. Tick and TickOp panic if t was not made by NewTicker.
func (t *Ticker) Tick(ctx context.Context) (due time.Time, err error) {
	return suspend.Wait[time.Time](ctx, t.newTurn())
}

// TickOp returns an Op that performs Tick.
func (t *Ticker) TickOp() suspend.Op[time.Time] {
	tick := t.newTurn()
	return suspend.OpOf[time.Time](&tick)
}

func (t *Ticker) newTurn() turn {
	if t.every <= 0 {
		panic("rate: wait for the zero Ticker")
	}
	return turn{line: &t.line, pace: t}
}

// All returns an iterator over the times of the ticks. The loop ends when ctx is done, and for no other reason, so the iterator yields no
// error. After the loop, suspend.Err(ctx) returns the cancellation error.
func (t *Ticker) All(ctx context.Context) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		for {
			due, err := t.Tick(ctx)
			if err != nil || !yield(due) {
				return
			}
		}
	}
}

func (t *Ticker) refuses(int) error { return nil }

func (t *Ticker) at(now time.Time, _ float64) time.Time {
	if t.next.Sub(now) > t.every { // the clock has gone back
		t.next = now.Add(t.every)
	}
	return t.next
}

func (t *Ticker) spend(now time.Time, _ int) {
	t.next = t.next.Add(t.every)
	if late := now.Sub(t.next); t.policy == Skip && late >= 0 {
		t.next = t.next.Add(late - late%t.every + t.every)
	}
}
