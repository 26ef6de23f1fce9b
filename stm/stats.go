package stm

import "sync/atomic"

// Stats holds counters for all transactions of the process. Only failed runs and waits update a counter, so that the
// statistics do not slow down a transaction that commits at once.
type Stats struct {
	Commits   int64 // commits that wrote at least one Var
	Conflicts int64 // runs dropped because another commit changed a Var that they had read
	Waits     int64 // runs that returned Retry, except in a Try
	Elders    int64 // transactions that became the elder; see Atomically
}

var stats struct{ conflicts, waits, elders atomic.Int64 }

// ReadStats returns the counters. They are read one after another, so they are not a consistent snapshot.
func ReadStats() Stats {
	return Stats{Commits: clock.Load(), Conflicts: stats.conflicts.Load(), Waits: stats.waits.Load(), Elders: stats.elders.Load()}
}
