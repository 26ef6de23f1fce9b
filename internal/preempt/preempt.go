// Package preempt says whether a scheduler wants to switch where an operation need not wait: one for tests, and nearly always none. A
// primitive asks On before its fast path, and takes the slow one if so: there package suspend asks the scheduler.
package preempt

import "sync/atomic" // not atomicx: the order of accesses makes no difference, and the model checker need not see them

var wanted atomic.Int32

// On reports whether a scheduler wants it.
func On() bool { return wanted.Load() != 0 }

// Begin says that a scheduler wants it from now on, until end is called, once.
func Begin() (end func()) {
	wanted.Add(1)
	return func() { wanted.Add(-1) }
}
