package suspend

import (
	"context"
	"time"
)

// Now returns the time by the clock of the calling task's scheduler.
func Now() time.Time { return now(Here()) }

func now(on Spawner) time.Time {
	if c, ok := As[Clock](on); ok {
		return c.Now()
	}
	return time.Now()
}

// AfterFunc calls f after d, by the timers of on. Where on is nil or has none, they are those of package time, and f runs
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
		return Err(ctx)
	}
	on := Here()
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

// After is ready once d has passed since the wait for it began, and returns the time. The timer and the clock are those
// of the scheduler of the task that waits. For a Then they are those of its executor, and those of package time if it has none: the caller
// of Then may be a task of a scheduler that ends first.
func After(d time.Duration) Op[time.Time] { return Op[time.Time]{timerEvent{d: d}} }

// Until is ready from the time t on, and returns the time. The clock is chosen as by After.
func Until(t time.Time) Op[time.Time] { return Op[time.Time]{timerEvent{t: t, absolute: true}} }

// A timerEvent is the end of d, or absolute.
type timerEvent struct {
	d        time.Duration
	t        time.Time
	absolute bool
}

func (e timerEvent) prepare(on Spawner) prepared[time.Time] { return &timerArm{timerEvent: e, on: on} }

// left returns how long it takes until then.
func (e timerEvent) left(on Spawner) time.Duration {
	if e.absolute {
		return e.t.Sub(now(on))
	}
	return e.d
}

// A timerArm is a level.
type timerArm struct {
	landing[time.Time]
	timerEvent
	on   Spawner // whose timers; nil: those of the performing task
	stop func() bool
}

// pin keeps the ends of the timers among legs over another look.
func pin(legs []leg) (undo func()) {
	var pinned []*timerArm
	for _, l := range legs {
		if a, ok := l.arm.(*timerArm); ok && !a.absolute {
			a.t, a.absolute = now(a.scheduler()).Add(a.d), true
			pinned = append(pinned, a)
		}
	}
	if pinned == nil {
		return unpinNothing
	}
	return func() {
		for _, a := range pinned {
			a.absolute = false
		}
	}
}

func unpinNothing() {}

// timersOf returns the scheduler whose timers a Then on on uses.
func timersOf(on Executor) Spawner {
	if s, ok := on.(Spawner); ok {
		return s
	}
	return Goroutines
}

func (a *timerArm) scheduler() Spawner {
	if a.on != nil {
		return a.on
	}
	return Here()
}

func (a *timerArm) arms(to []leg) []leg { return append(to, leg{arm: a}) }

func (a *timerArm) try() bool {
	if !a.absolute && a.d > 0 {
		return false
	}
	on := a.scheduler()
	if a.left(on) > 0 {
		return false
	}
	a.v, a.has = now(on), true
	return true
}

func (a *timerArm) enqueue(w waiting) {
	r, on := a.land(w), a.scheduler()
	a.stop = AfterFunc(on, a.left(on), func() { r.Resume(now(on), nil) })
}

func (a *timerArm) remove() {
	if a.stop != nil { // or else it panicked before it was begun
		a.stop()
		a.stop = nil
	}
}
