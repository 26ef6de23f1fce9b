//go:build explore

package suspend

import "sync/atomic"

// A number is the place of a Guard in the order of Guards.Lock, during one run of the model checker. A Guard in a package variable gets
// a new number in each run, so that all runs begin alike. The model checker need not see these accesses, because no two goroutines
// make them at the same time.
type number struct{ n, run atomic.Uint64 }

var lastNumber, currentRun atomic.Uint64

// NumberGuards is called at the beginning of a run. It exists only with the build tag explore.
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
