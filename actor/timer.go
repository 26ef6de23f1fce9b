package actor

import (
	"time"

	"github.com/braidgo/braid/suspend"
)

// A timer is that of one wait, so that what it finds when it fires is that wait, or nothing.
type timer struct {
	expired bool // guarded by the guard of the mailbox, like looked
	looked  bool // expired, and the wait has fetched all that was there then
	cancel  func() bool
}

// stop is for the end of the wait.
func (t *timer) stop() {
	if t != nil && t.cancel != nil {
		t.cancel()
	}
}

// startTimer begins the timeout of a wait.
func (in *Inbox[M]) startTimer(d time.Duration) *timer {
	t := &timer{expired: d <= 0}
	if !t.expired {
		t.cancel = in.afterFunc(d, func() { in.expire(t) })
	}
	return t
}

// expire is called by the clock. It wakes the actor, and only the wait of t finds that it has expired: at once, or when its nested
// waits are over.
func (in *Inbox[M]) expire(t *timer) {
	in.guard.Lock()
	t.expired = true
	start := in.wakeLocked()
	in.guard.Unlock()
	if start {
		in.self.launch()
	}
}

// afterFunc calls f after d, by the timers of the actor's scheduler, and for an inbox by those of the caller's.
func (in *Inbox[M]) afterFunc(d time.Duration, f func()) (stop func() bool) {
	if in.self != nil {
		return suspend.AfterFunc(in.self.on, d, f)
	}
	return suspend.AfterFunc(suspend.Here(), d, f)
}

// SendAfter sends m to the actor itself once d has passed, unless stop comes first; stop reports whether it did. An absolute
// deadline is made with it. If the actor ends first, m goes nowhere, as it was not accepted yet.
func (s *Self[M]) SendAfter(d time.Duration, m M) (stop func() bool) {
	l := new(later)
	s.leave(&l.leaving, func() { l.cancel() })
	q := s.requestOf(m)
	l.cancel = s.afterFunc(d, func() {
		if s.take(&l.leaving) {
			_ = s.post(m, q, true)
		}
	})
	return func() bool {
		if !s.take(&l.leaving) {
			return false
		}
		l.cancel()
		return true
	}
}

// A later is a SendAfter on its way.
type later struct {
	leaving leaving
	cancel  func() bool
}
