//go:build explore

package suspend

import "sync/atomic"

// A number is the place of a Guard in the order of LockAll, during one run of the model checker. A Guard that outlives
// the run, since it belongs to a package, gets another in the next, and so each run begins alike. The checker does not
// see these accesses: no two goroutines make them at once.
type number struct{ n, run atomic.Uint64 }

var lastNumber, currentRun atomic.Uint64

// NumberGuards begins a run. It exists with the tag explore only.
func NumberGuards() {
	currentRun.Add(1)
	lastNumber.Store(0)
}

func (n *number) rank() uint64 {
	if run := currentRun.Load(); n.n.Load() == 0 || n.run.Load() != run {
		n.n.Store(lastNumber.Add(1))
		n.run.Store(run)
	}
	return n.n.Load()
}
