package stm

import (
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// Commits take turns under one guard; reads take none. This is LSA (Riegel, Felber and Fetzer, "A lazy snapshot algorithm
// with eager validation", DISC 2006) with serial commits. The differences: a Var keeps one version, a box carries its
// version so that no lock bit is needed, and the garbage collector reclaims boxes, so there is no ABA.
//
// One guard for all is what makes a transaction a case of a Select: a Source has one Guard, always the same, and the Vars of
// a transaction are not known before it has run.
var (
	guard suspend.Guard
	clock atomicx.Int64 // the last commit's time; written under the guard
)

// An outcome is the result of a run.
type outcome uint8

const (
	committed outcome = iota
	conflict          // something that tx has read has changed
	behind            // the elder has to commit before
	retry             // f has returned Retry
	failed            // f has returned another error
	ready             // f has returned nil, and Try is to commit
)

// awaitCommit waits until the commit that is under way is over.
func awaitCommit() {
	guard.Lock()
	//lint:ignore SA2001 a commit holds the guard, and there is nothing to do after it
	guard.Unlock()
}

// commitLocked commits tx, unless it has to be run again, or to wait, first.
// It resumes at most that number of waiters. If more are left, tx has nodes then, and its caller must call wakeRest.
func (tx *Tx) commitLocked(most int) outcome {
	switch {
	case elder != nil && elder != tx && !tx.overtakes:
		return behind
	case !tx.validLocked():
		return conflict
	}
	now := clock.Load() + 1
	for _, w := range tx.writes {
		w.of.publish(w.to, now)
	}
	clock.Store(now) // after all boxes: pairs with the loads in attempt and extend
	for _, w := range tx.writes {
		if l := &w.at.watched; l.First() != nil {
			if most = l.wakeLocked(nil, most); most == 0 && l.First() != nil && l.Last().Value != nil {
				tx.markLocked(l)
			}
		}
	}
	return committed
}

// validLocked reports whether all that tx has read is still there.
func (tx *Tx) validLocked() bool {
	if tx.now == clock.Load() {
		return true
	}
	for _, b := range tx.reads {
		if !b.current() {
			return false
		}
	}
	return true
}
