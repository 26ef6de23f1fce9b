package respool

import (
	"slices"

	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/suspend"
)

// TryAcquire returns a Lease for the last usable idle resource: that which was used last of those that are not too old and need no Check. If
// there is none, or other tasks wait for a resource, or the pool is closed, TryAcquire returns false and changes nothing. It never suspends.
func (p *Pool[R]) TryAcquire() (l *Lease[R], ok bool) {
	now := suspend.Now()
	l = p.tryTake(func(r *resource[R]) bool { return p.ready(r, now) }, func() { p.countLocked(beginning{time: now}, now) })
	return l, l != nil
}

// AcquireAllIdle returns Leases for the idle resources, in the order of their last use, and without a Check. It is for a task that keeps the
// resources alive, and gives them back with ReleaseUnused. If other tasks wait for a resource, or the pool is closed, AcquireAllIdle returns
// no Lease, and if this happens during the call, it returns those that it has taken by then. It never suspends.
func (p *Pool[R]) AcquireAllIdle() []*Lease[R] {
	var all []*Lease[R]
	for l := p.tryTake(nil, nil); l != nil; l = p.tryTake(nil, nil) {
		all = append(all, l)
	}
	slices.Reverse(all)
	return all
}

// tryTake takes an idle resource as takeIdleLocked does, with a permit. It then calls count, unless count is nil. It returns nil, and
// changes nothing, if there is no such resource or no permit.
func (p *Pool[R]) tryTake(match func(r *resource[R]) bool, count func()) *Lease[R] {
	if !p.permits.TryAcquire(1) {
		return nil
	}
	preempt.Looks(preempt.Resources)
	p.mu.Lock()
	r := p.takeIdleLocked(match) // after a Close there is none
	if r != nil {
		p.users++
		if count != nil {
			count()
		}
	}
	p.mu.Unlock()
	if r == nil {
		p.permits.Release(1)
		return nil
	}
	return &Lease[R]{Value: r.value, of: r, pool: p}
}

// Expire closes the idle resources that are too old. Without Expire, such a resource is closed only when an Acquire finds
// it, which may never happen in a pool with little load. Call Expire periodically, for example in a task with a
// rate.Ticker. Expire suspends only if Options.Close suspends.
func (p *Pool[R]) Expire() {
	outcome.Each(p.expireOne)
}

// expireOne closes an idle resource that is too old, and reports whether there was such a resource.
func (p *Pool[R]) expireOne() bool {
	// If every permit is taken, or tasks wait for permits, no resource is idle for long.
	if !p.permits.TryAcquire(1) {
		return false
	}
	now := suspend.Now()
	r, ok := p.addUser(func(r *resource[R]) bool { return p.tooOld(r, now) })
	if !ok {
		p.permits.Release(1)
		return false
	}
	defer p.returnPermit()
	if r != nil {
		p.close(r)
	}
	return r != nil
}

// Reset makes the pool open new resources, for example after a server has failed over. It closes the idle resources. A leased resource is
// closed by its Release. A resource whose call of Open has begun before the Reset is closed when it is open. If an Acquire waits for it, the
// same call then opens another one, so that the Acquires that wait keep their order. Only an Acquire that was about to return a resource
// starts again, as the last. Reset suspends only if Options.Close suspends. Meanwhile tasks can already acquire new resources.
func (p *Pool[R]) Reset() {
	suspend.Point()
	preempt.Releases(preempt.Resources)
	p.mu.Lock()
	p.resets++
	idle := p.idle
	p.idle = nil
	p.users += len(idle)
	p.mu.Unlock()
	outcome.Each(func() bool {
		if len(idle) == 0 {
			return false
		}
		defer p.removeUser()
		r := idle[0]
		idle = idle[1:]
		p.close(r)
		return true
	})
}

// addUser increments p.users, and takes an idle resource as takeIdleLocked does. If p is closed, addUser changes nothing and returns false.
// Both changes are one step, as in joinAndTakeIdle.
func (p *Pool[R]) addUser(match func(r *resource[R]) bool) (r *resource[R], ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, false
	}
	p.users++
	return p.takeIdleLocked(match), true
}

// takeIdle removes and returns the idle resource that was used last, or nil if there is none.
func (p *Pool[R]) takeIdle() *resource[R] {
	preempt.Releases(preempt.Resources)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.takeIdleLocked(nil)
}

// takeIdleLocked is like takeIdle, but considers only the resources for which match returns true, unless match is nil.
func (p *Pool[R]) takeIdleLocked(match func(r *resource[R]) bool) *resource[R] {
	for i, r := range slices.Backward(p.idle) {
		if match == nil || match(r) {
			p.idle = slices.Delete(p.idle, i, i+1)
			return r
		}
	}
	return nil
}
