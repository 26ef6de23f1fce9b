package stm

import "sync/atomic"

// Stats counts what has happened to transactions of this process so far. Only what makes a transaction run again or
// wait is counted where it happens, so a transaction that commits at once pays nothing.
type Stats struct {
	Commits   int64 // commits that have written something
	Conflicts int64 // runs that others have made vain
	Waits     int64 // runs that have returned Retry, and have waited
	Elders    int64 // transactions that had to be the elder
}

var stats struct{ conflicts, waits, elders atomic.Int64 }

// ReadStats returns the counters. They are not of one moment.
func ReadStats() Stats {
	return Stats{Commits: clock.Load(), Conflicts: stats.conflicts.Load(), Waits: stats.waits.Load(), Elders: stats.elders.Load()}
}
