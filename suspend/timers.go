package suspend

import (
	"context"
	"time"
)

// Now returns the time by the clock of the calling task's scheduler.
func Now() time.Time { return nowOf(Here()) }

func nowOf(on Spawner) time.Time {
	if c, ok := As[Clock](on); ok {
		return c.Now()
	}
	return time.Now()
}

// AfterFunc calls f after d, by the timers of on. Where on is nil or has none, package time calls f
// on a goroutine. f must not suspend. stop reports whether it has prevented the call.
func AfterFunc(on Spawner, d time.Duration, f func()) (stop func() bool) {
	if t, ok := As[Timers](on); ok {
		return t.AfterFunc(d, f)
	}
	return time.AfterFunc(d, f).Stop
}

// Sleep suspends the calling task for d, by the timers of its scheduler. If ctx is done first, or already, it returns the
// error of the cancellation.
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
		if stop != nil && !fired { // cancelled, or ctx has panicked
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

// A sleeper is a Spawner for tests whose tasks wake up at any time. Sleeps reports whether the calling task has slept, which was not cancelled.
type sleeper interface {
	Sleeps(ctx context.Context, d time.Duration) bool
}

// After is ready once d has passed since the wait for it began, and returns the time. The timer and the clock belong
// to the scheduler of the waiting task, or to the executor of a Then. If the executor has none, package time has them: the caller
// of Then may be a task of a scheduler that ends first.
func After(d time.Duration) Op[time.Time] { return Op[time.Time]{timerOp(d)} }

// A timerOp is ready once this time has passed.
type timerOp time.Duration

func (op timerOp) begin(on Spawner, to []leg) ([]leg, result[time.Time]) {
	l := &timerLeg{d: time.Duration(op), on: on}
	return append(to, leg{does: l}), l
}

// A timerLeg is a level.
type timerLeg struct {
	landing[time.Time]
	d      time.Duration
	t      time.Time // when d has passed, if pinned
	pinned bool      // pin was called
	on     Spawner   // has the timers; nil means the performing task's scheduler
	stop   func() bool
}

// pin turns the durations of the timers among legs into times, so that another look does not begin them anew.
func pin(legs []leg) (pinned []*timerLeg) {
	for _, l := range legs {
		if t, ok := l.does.(*timerLeg); ok && !t.pinned {
			t.t, t.pinned = nowOf(t.scheduler()).Add(t.d), true
			pinned = append(pinned, t)
		}
	}
	return pinned
}

// unpin ends what pin has begun.
func unpin(pinned []*timerLeg) {
	for _, t := range pinned {
		t.pinned = false
	}
}

// timersOf returns the scheduler whose timers a Then on on uses.
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

// left returns how long it takes until then, by the clock of on.
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
	if l.stop != nil { // a nil stop means a panic before the timer began
		l.stop()
		l.stop = nil
	}
}
