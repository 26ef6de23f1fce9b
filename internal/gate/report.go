package gate

import (
	"github.com/braidgo/braid/internal/ledger"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/suspend"
)

// This file reports the operations of a Gate to a test scheduler, which may switch tasks in each of them, and to the ledger, which records
// the holders. It is not needed to understand the Gate. Package suspend reports the waits.

// tryReported is TryAcquire while preempt.On returns true. It takes the guard, so a test scheduler sees the fast path only where it switches
// tasks at single accesses.
func (g *Gate) tryReported(n, size uint64) bool {
	suspend.Point()
	preempt.Looks(preempt.Gates)
	ok := g.tryAcquireSlow(n, size)
	if ok {
		Request{g, n, size}.Took(0)
	}
	return ok
}

// gives reports that the caller is about to release n permits.
func (g *Gate) gives(n uint64) {
	preempt.Releases(preempt.Gates)
	ledger.GaveN(g, n)
}

// Wants implements ledger.Wanter.
func (r Request) Wants() ledger.Permits { return ledger.Permits(r.N) }

// Took implements ledger.Holder. It records that the caller holds the permits.
func (r Request) Took(then ledger.Then) {
	if ledger.On() {
		r.guard.Relock()
		size := r.sizeLocked(r.Size)
		r.guard.Unlock()
		ledger.TookN(r.Gate, r.N, size, then)
	}
}

// LooksAt implements preempt.Looker.
func (l *looking) LooksAt() preempt.Kinds { return preempt.Gates }
