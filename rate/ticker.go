package rate

import (
	"context"
	"iter"
	"time"

	"github.com/braidgo/braid/suspend"
)

// A Policy decides about ticks that no task has waited for in time.
type Policy int

const (
	Skip    Policy = iota // the first comes at once, and the rest is dropped, even a tick that is due just then
	CatchUp               // all come at once, one after the other
)

// A Ticker is due again and again, at fixed intervals. It has no goroutine, and no timer unless a task waits. NewTicker makes a Ticker, and
// it must not be copied. Each tick goes to one of the tasks that wait. Its clock is chosen as for a Limiter.
//
//	for due := range rate.NewTicker(time.Minute, rate.Skip).All(ctx) {
//		report(due)
//	}
//	return suspend.Err(ctx)
//
// A time.Ticker drops ticks for a slow reader, too, and a task that waits for its channel blocks its scheduler.
type Ticker struct {
	line
	every  time.Duration
	policy Policy
	next   time.Time // zero until the first wait
}

// NewTicker returns a Ticker whose first tick comes an interval after the first wait for it has begun. It panics if every is not positive.
func NewTicker(every time.Duration, policy Policy) *Ticker {
	if every <= 0 {
		panic("rate: Ticker without an interval")
	}
	t := &Ticker{every: every, policy: policy}
	t.line.of = t
	return t
}

// Tick suspends the caller until the next tick, and returns the time at which it was due. If ctx is done first, or already, it returns the
// cancellation error, and has used up no tick.
func (t *Ticker) Tick(ctx context.Context) (due time.Time, err error) {
	return suspend.Wait[time.Time](ctx, turn{line: &t.line}, false)
}

// TickOp is Tick as an Op.
func (t *Ticker) TickOp() suspend.Op[time.Time] { return suspend.OpOf[time.Time](&turn{line: &t.line}) }

// All yields one tick after another, until ctx is done.
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

func (t *Ticker) at(now time.Time, _ int) time.Time {
	if t.next.IsZero() {
		t.next = now.Add(t.every)
	}
	return t.next
}

func (t *Ticker) take(now time.Time, _ int) {
	t.next = t.next.Add(t.every)
	if late := now.Sub(t.next); t.policy == Skip && late >= 0 {
		t.next = t.next.Add(late - late%t.every + t.every)
	}
}
