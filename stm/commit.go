package stm

import (
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// One guard serialises all commits; reads take no lock. The algorithm is LSA (Riegel, Felber and Fetzer, "A lazy snapshot
// algorithm with eager validation", DISC 2006) with serial commits. It differs in three points: a Var keeps one version; a
// box carries its version, so that no lock bit is needed; and the garbage collector reclaims boxes, so that there is no ABA
// problem.
//
// The single guard allows a transaction to be a case of a Select: a Source must always return the same Guard, but the Vars
// of a transaction are not known before it has run.
var (
	guard suspend.Guard
	clock atomicx.Int64 // the version of the last commit; it changes under the guard
)

// An outcome is the result of a run.
type outcome uint8

const (
	committed outcome = iota
	conflict          // a Var that tx has read has changed
	behind            // another transaction is the elder, and must end first
	retry             // the function has returned Retry
	failed            // the function has returned another error
	ready             // the function has returned nil; operation.Try will commit
)

// awaitCommit waits until the commit in progress has ended.
func awaitCommit() {
	guard.Lock()
	//lint:ignore SA2001 a commit holds the guard, so locking it waits for the commit
	guard.Unlock()
}

// commitLocked commits tx, unless tx must run again or wait for the elder. commitLocked resumes waiters, but not more
// than the parameter most. If waiters are left for tx to resume, tx.nodes is not empty, and the caller must call
// wakeRest.
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
	clock.Store(now) // must follow the stores of all boxes; pairs with the loads in Tx.attempt and Tx.extend
	for _, w := range tx.writes {
		if l := &w.at.watched; l.First() != nil {
			if most = l.wakeLocked(nil, most); most == 0 {
				tx.markLocked(l)
			}
		}
	}
	return committed
}

// validLocked reports whether every Var that tx has read is unchanged.
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
