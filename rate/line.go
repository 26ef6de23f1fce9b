package rate

import (
	"math"
	"time"

	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

// A line serves waiters in order, because the time at which a waiter is due depends on the earlier waiters. Only the first waiter has a
// timer, from its own scheduler.
type line struct {
	// -W> is a waiter that comes or leaves, -T> the timer of the first waiter.
	//
	//	empty   -W> waiting  the timer is started
	//	waiting -T> waiting  the waiters that are due are resumed; a timer is started for the next waiter
	//	waiting -W> waiting  the first waiter leaves, or its context ends: the timer is stopped; then as for -T>
	//
	// Invariant: the field pace is set if there are waiters.
	//
	// Debt: a task that removes the first waiter, or changes the time at which it is due, must call serveLocked, because otherwise the
	// timer fires at the wrong time. A timer that fires although it was stopped does no harm.

	guard   suspend.Guard
	heir    suspend.Heir
	waiters suspend.Queue[time.Time, place]
	stop    func() bool // stops the timer
	pace    pace
}

// A pace is a Limiter or a Ticker. Its method refuses returns an error if n tokens are never due. Its method at returns the time at which n
// tokens, or the next tick, are due, or never; spend(now, n) takes them.
type pace interface {
	refuses(n int) error
	at(now time.Time, n float64) time.Time
	spend(now time.Time, n int)
}

// A place describes a waiter: the number of tokens for which it waits, and its scheduler.
type place struct {
	n  int
	on suspend.Spawner
}

func (p place) now() time.Time {
	if c, ok := suspend.As[sched.Clock](p.on); ok {
		return c.Now()
	}
	return time.Now()
}

func (l *line) serveLocked() {
	if l.stop != nil {
		l.stop()
		l.stop = nil
	}
	for l.waiters.DropEnded(); l.waiters.Len() > 0; l.waiters.DropEnded() {
		p := *l.waiters.Head()
		now := p.now()
		due, err := time.Time{}, l.pace.refuses(p.n)
		if err == nil {
			if due = l.pace.at(now, float64(p.n)); due.After(now) {
				l.armLocked(due.Sub(now))
				return
			}
		}
		if _, ok := l.waiters.ResumeHead(due, err); ok && err == nil {
			l.pace.spend(now, p.n)
		}
	}
}

// wantedLocked returns the number of tokens for which requests wait, as a float64, because the sum may overflow an int.
func (l *line) wantedLocked() (n float64) {
	for p := range l.waiters.Pending() {
		n += l.wants(p)
	}
	return n
}

// wants returns the number of tokens that p will take: none, if it will be refused.
func (l *line) wants(p place) float64 {
	if l.pace.refuses(p.n) != nil {
		return 0
	}
	return float64(p.n)
}

// dropEndedLocked serves the waiters behind those that have ended, because the timer may belong to the scheduler of an ended one.
func (l *line) dropEndedLocked() {
	if l.waiters.DropEnded() {
		l.serveLocked()
	}
}

// An inheritor is a line. It has a type of its own, so that a Limiter does not export its method.
type inheritor line

// Inherit implements suspend.Inheritor.
func (i *inheritor) Inherit() {
	i.guard.Lock()
	(*line)(i).dropEndedLocked()
	i.guard.Unlock()
}

// armLocked starts a timer for the first waiter. The caller must hold l.guard.
func (l *line) armLocked(d time.Duration) {
	if d == math.MaxInt64 { // the result of never.Sub
		return
	}
	l.stop = suspend.AfterFunc(l.waiters.Head().on, d, func() {
		l.guard.Lock()
		defer l.guard.Unlock()
		l.serveLocked()
	})
}

// A turn is the Source of a wait for n tokens, or for a tick.
type turn struct {
	*line
	pace     pace // the Limiter or Ticker; line.pace is the same, but only the first Enqueue sets it
	n        int
	deadline time.Time // zero if there is none, or if the wait may fail only then
}

func (t turn) Guard() *suspend.Guard { return &t.guard }

func (t turn) Try() (due time.Time, ok bool, err error) {
	t.dropEndedLocked()
	if err = t.pace.refuses(t.n); err != nil {
		return due, true, err
	}
	now := suspend.Now()
	if t.waiters.Len() == 0 {
		if due = t.pace.at(now, float64(t.n)); !due.After(now) {
			t.pace.spend(now, t.n)
			return due, true, nil
		}
	}
	if t.isTooLate(now) {
		return due, true, ErrTooLate
	}
	return due, false, nil
}

// isTooLate reports whether the tokens are due after the deadline. It returns false if no time is known, and if the deadline has passed
// although the context has not ended, since the context then has another clock.
func (t turn) isTooLate(now time.Time) bool {
	if !t.deadline.After(now) {
		return false
	}
	n := float64(t.n)
	isLate := func() bool {
		due := t.pace.at(now, n)
		return due.After(t.deadline) && due.Before(never)
	}
	for p := range t.waiters.Pending() {
		if isLate() { // the rest of the line need not be looked at
			return true
		}
		n += t.wants(p)
	}
	return isLate()
}

func (t turn) Enqueue(r suspend.Resumer[time.Time]) {
	t.line.pace = t.pace
	p := place{t.n, r.Spawner()}
	t.waiters.Push(r, p)
	r.LeaveTo(&t.heir, (*inheritor)(t.line))
	if t.waiters.Len() == 1 {
		now := p.now()
		t.armLocked(t.pace.at(now, float64(p.n)).Sub(now))
	}
}

func (t turn) Remove(r suspend.Resumer[time.Time]) {
	first := t.waiters.Head()
	if t.waiters.Remove(r) && t.waiters.Head() != first {
		t.serveLocked()
	}
}
