package suspend

import (
	"context"
	"time"

	"github.com/braidgo/braid/suspend/sched"
)

// Now returns the time by the clock of the calling task's scheduler.
func Now() time.Time { return nowOf(Here()) }

func nowOf(on Spawner) time.Time {
	if c, ok := As[sched.Clock](on); ok {
		return c.Now()
	}
	return time.Now()
}

// AfterFunc calls f after d, by the timers of the scheduler on. If on is nil or has no Timers, package time calls f on a
// goroutine. f must not suspend. stop reports whether it has prevented the call.
func AfterFunc(on Spawner, d time.Duration, f func()) (stop func() bool) {
	if t, ok := As[sched.Timers](on); ok {
		return t.AfterFunc(d, f)
	}
	return time.AfterFunc(d, f).Stop
}

// Sleep suspends the calling task for the duration d, by the timers of its scheduler. If ctx ends first, or has already ended,
// Sleep returns the cancellation error.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		Point()
		return Err(ctx)
	}
	on := Here()
	if s, ok := on.(sleeper); ok && s.Sleeps(ctx, d) {
		return nil
	}
	var stop func() bool
	fired := false
	defer func() {
		if stop != nil && !fired { // the wait was cancelled, or ctx has panicked
			stop()
		}
	}()
	_, err := Suspend(ctx, func(r Resumer[struct{}]) (struct{}, bool) {
		stop = AfterFunc(on, d, func() { r.Resume(struct{}{}, nil) })
		return struct{}{}, false
	})
	fired = err == nil
	return err
}

// A sleeper is a Spawner for tests, which may wake a sleeping task at any time. Sleeps reports whether it has performed the sleep;
// otherwise Sleep starts a timer.
type sleeper interface {
	Sleeps(ctx context.Context, d time.Duration) bool
}

// After returns an Op that is ready once d has passed since the wait for it began. Its result is the time at that moment. The
// timer and the clock belong to the scheduler of the waiting task, or to the executor of a Then. If the executor has no timers,
// package time supplies them. The scheduler of Then's caller is not used, because it may end first.
func After(d time.Duration) Op[time.Time] { return Op[time.Time]{timerOp(d)} }

// A timerOp is the operation of After with this duration.
type timerOp time.Duration

func (op timerOp) expand(on Spawner, to []leg) ([]leg, result[time.Time]) {
	l := &timerLeg{d: time.Duration(op), on: on}
	return append(to, leg{does: l}), l
}

// A timerLeg is the leg of a timerOp. It is a level.
type timerLeg struct {
	levelLanding[time.Time]
	d      time.Duration
	t      time.Time // the time at which the timer expires, set by pin
	pinned bool      // t is set
	on     Spawner   // the scheduler of the timer; nil means the scheduler of the performing task
	stop   func() bool
}

// pin computes when the timers among legs expire, so that another look does not start them anew. It returns them for unpin.
func pin(legs []leg) (pinned []*timerLeg) {
	for _, l := range legs {
		if t, ok := l.does.(*timerLeg); ok && !t.pinned {
			t.t, t.pinned = nowOf(t.scheduler()).Add(t.d), true
			pinned = append(pinned, t)
		}
	}
	return pinned
}

// unpin undoes pin.
func unpin(pinned []*timerLeg) {
	for _, t := range pinned {
		t.pinned = false
	}
}

// timersOf returns the scheduler whose timers a Then uses if on is its executor.
func timersOf(on Executor) Spawner {
	if s, ok := on.(Spawner); ok {
		return s
	}
	return Goroutines
}

func (l *timerLeg) scheduler() Spawner {
	if l.on != nil {
		return l.on
	}
	return Here()
}

// left returns the time until the timer expires, by the clock of the scheduler on.
func (l *timerLeg) left(on Spawner) time.Duration {
	if l.pinned {
		return l.t.Sub(nowOf(on))
	}
	return l.d
}

func (l *timerLeg) about() any { return timerOp(0) }

func (l *timerLeg) try() bool {
	if !l.pinned && l.d > 0 {
		return false
	}
	on := l.scheduler()
	if l.left(on) > 0 {
		return false
	}
	l.v, l.has = nowOf(on), true
	return true
}

func (l *timerLeg) enqueue(b *waiter, began state, done <-chan struct{}) {
	r, on := l.land(b, began, done), l.scheduler()
	l.stop = AfterFunc(on, l.left(on), func() { r.Resume(nowOf(on), nil) })
}

func (l *timerLeg) remove() {
	if l.stop != nil { // a nil stop means that no timer has begun
		l.stop()
		l.stop = nil
	}
	l.begun.Store(false)
}
