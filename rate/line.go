package rate

import (
	"time"

	"github.com/braidgo/braid/suspend"
)

// A line serves waiters in order; the time of each depends on the earlier waiters. The first waits by the timers of
// its scheduler, and the rest waits for the first.
type line struct {
	// -W> is a waiter, -T> the timer of the first.
	//
	//	empty   -W> waiting  its timer begins
	//	waiting -T> waiting  the waiters that are due are resumed; the timer of the next begins, if there is a next
	//	waiting -W> waiting  the first leaves: as by its timer, which is stopped
	//
	// Debt: a change of the first waiter, or of its time, must call serveLocked, or the timer would be wrong. A timer
	// that comes too late to be stopped does no harm.

	guard   suspend.Guard
	waiters suspend.Queue[time.Time, place]
	stop    func() bool // stops the timer
	of      pace
}

// A pace computes when n are due, and takes them.
type pace interface {
	at(now time.Time, n int) time.Time
	take(now time.Time, n int)
}

// A place is a waiter for n, on a scheduler.
type place struct {
	n  int
	on suspend.Spawner
}

func (p place) now() time.Time {
	if c, ok := suspend.As[suspend.Clock](p.on); ok {
		return c.Now()
	}
	return time.Now()
}

func (l *line) serveLocked() {
	if l.stop != nil {
		l.stop()
		l.stop = nil
	}
	for l.waiters.Len() > 0 {
		p := *l.waiters.Head()
		now := p.now()
		due := l.of.at(now, p.n)
		if due.After(now) {
			l.armLocked(due.Sub(now))
			return
		}
		if _, ok := l.waiters.ResumeHead(due, nil); ok {
			l.of.take(now, p.n)
		}
	}
}

// armLocked begins the timer of the first waiter.
func (l *line) armLocked(d time.Duration) {
	l.stop = suspend.AfterFunc(l.waiters.Head().on, d, func() {
		l.guard.Lock()
		defer l.guard.Unlock()
		l.serveLocked()
	})
}

// A turn is the Source of a wait for n.
type turn struct {
	*line
	n   int
	err error // a wait with an err fails at once
}

func (t turn) Guard() *suspend.Guard { return &t.guard }

func (t turn) Try() (due time.Time, ok bool, err error) {
	if t.err != nil || t.waiters.Len() > 0 {
		return due, t.err != nil, t.err
	}
	now := suspend.Now()
	if due = t.of.at(now, t.n); due.After(now) {
		return due, false, nil
	}
	t.of.take(now, t.n)
	return due, true, nil
}

func (t turn) Enqueue(r suspend.Resumer[time.Time]) {
	p := place{t.n, r.Spawner()}
	t.waiters.Push(r, p)
	if t.waiters.Len() == 1 {
		now := p.now()
		t.armLocked(t.of.at(now, p.n).Sub(now))
	}
}

func (t turn) Remove(r suspend.Resumer[time.Time]) {
	first := t.waiters.Head()
	if t.waiters.Remove(r) && t.waiters.Head() != first {
		t.serveLocked()
	}
}
