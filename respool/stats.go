package respool

import (
	"time"

	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/suspend"
)

// Stats holds the numbers of resources in a Pool at one moment, and the numbers of some calls since New. An AcquireAllIdle does not count.
type Stats struct {
	Idle   int
	Leased int // leased, being opened, or being closed
	Opened int // opened since New

	AcquireCount         int           // the calls of Acquire and TryAcquire that have returned a Lease
	EmptyAcquireCount    int           // the calls of AcquireCount that have waited because no resource was idle
	AcquireDuration      time.Duration // the total time that the calls of AcquireCount have waited, for a resource or in Check
	CanceledAcquireCount int           // the calls of Acquire that have returned the cancellation error
}

// Stats returns the current numbers. It never suspends.
func (p *Pool[R]) Stats() Stats {
	suspend.Point()
	preempt.Looks(preempt.Gates | preempt.Resources)
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.total
	s.Idle, s.Leased = len(p.idle), p.users
	return s
}

// countLocked counts a call that gets a Lease.
func (p *Pool[R]) countLocked(since beginning, now time.Time) {
	p.total.AcquireCount++
	p.total.AcquireDuration += now.Sub(since.time)
	if since.waited {
		p.total.EmptyAcquireCount++
	}
}

func (p *Pool[R]) countCancelled() {
	p.mu.Lock()
	p.total.CanceledAcquireCount++
	p.mu.Unlock()
}
