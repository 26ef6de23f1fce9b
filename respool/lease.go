package respool

import (
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/suspend"
)

// A Lease is the right to use a resource, from Acquire to Release.
type Lease[R any] struct {
	Value R

	of        *resource[R]
	pool      *Pool[R]
	discarded atomicx.Bool
	released  atomicx.Bool
}

// Release returns the resource to the pool. If the resource is too old, was opened before a Reset, was discarded, or is rejected by Reuse,
// or if the pool is closed, Release closes the resource. The task that has waited longest gets its turn before the resource is closed.
// Release waits for Reuse and Close, and suspends only if they suspend. Any task may call Release. A second Release panics.
func (l *Lease[R]) Release() { l.release(true) }

// ReleaseUnused is like Release, but does not count as a use: MaxIdleTime and Fresh are measured from the last use before this Lease, and
// the resource returns to its place among the idle resources.
func (l *Lease[R]) ReleaseUnused() { l.release(false) }

func (l *Lease[R]) release(used bool) {
	if l.released.Swap(true) {
		panic("respool: Lease released twice")
	}
	preempt.Releases(preempt.Gates)
	p, r := l.pool, l.of
	var to *dial[R]
	kept := false
	defer func() { p.putAway(r, kept, to) }() // Reuse may also have panicked
	now := suspend.Now()
	if used {
		r.idle, r.use = now, 0
	}
	if l.discarded.Load() || p.tooOld(r, now) || p.isOutdated(r) || p.o.Reuse != nil && !p.o.Reuse(r.value) {
		return
	}
	kept, to = p.keep(r, false)
}

// Discard marks the resource as broken, so that Release closes it. Discard has no effect after Release.
func (l *Lease[R]) Discard() { l.discarded.Store(true) }
