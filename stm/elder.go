package stm

import (
	"context"
	"math"

	"github.com/braidgo/braid/suspend"
)

// A long transaction may fail repeatedly, because shorter transactions commit while it runs. A transaction that has
// failed ten times (see patience) becomes the elder, unless there is one already. Before they commit, all other
// transactions must wait until the elder has ended, so that its next run succeeds. An elder that returns Retry steps down
// before it waits.
//
// -F> a failed run, -E> the end of the elder, -B> another commit
//
//	nobody  -F> elder     ten runs of tx have failed
//	elder   -B> elder     the other transaction waits in the list younger, unless it is a Try
//	elder   -E> nobody    each transaction in the list is resumed; it commits, or fails and runs again
//
// Debt: the elder must resume every transaction in the list younger, however the elder ends.
var (
	elder   *Tx  // protected by guard
	younger list // protected by guard
)

const patience = 10

// age counts a failed run, and makes tx the elder if it has failed often enough.
func (tx *Tx) age() {
	tx.failed()
	tx.claimElder()
}

func (tx *Tx) failed() {
	tx.fails++
	stats.conflicts.Add(1)
}

// claimElder makes tx the elder if there is no elder and the number of failed runs has reached the constant patience.
func (tx *Tx) claimElder() {
	if tx.fails < patience {
		return
	}
	guard.Lock()
	if elder == nil {
		elder = tx
		stats.elders.Add(1)
	}
	guard.Unlock()
}

// stepDown resets the count of failed runs. If tx is the elder, stepDown resumes the younger transactions.
func (tx *Tx) stepDown() {
	if tx.fails >= patience {
		guard.Lock()
		tx.stepDownLocked()
		guard.Unlock()
	}
	tx.fails = 0
}

func (tx *Tx) stepDownLocked() {
	if elder == tx {
		elder = nil
		younger.wakeLocked(nil, all)
	}
}

// all is a limit for wakeLocked that no number of waiters reaches.
const all = math.MaxInt

// giveWay suspends the caller until no other transaction is the elder.
func (tx *Tx) giveWay(ctx context.Context) error {
	_, err := suspend.Wait[struct{}](ctx, turn{tx})
	return err
}

// A turn is a Source that is ready when no transaction other than tx is the elder.
type turn struct{ tx *Tx }

func (t turn) Guard() *suspend.Guard { return &guard }
func (t turn) Try() (_ struct{}, ok bool, _ error) {
	return struct{}{}, elder == nil || elder == t.tx, nil
}
func (t turn) Remove(suspend.Resumer[struct{}]) { t.tx.unlinkLocked() }

func (t turn) Enqueue(r suspend.Resumer[struct{}]) {
	t.tx.resumer = r
	t.tx.queueLocked(t.tx)
}

// queueLocked appends tx to the list younger. When the elder ends, it resumes w.
func (tx *Tx) queueLocked(w waiter) {
	tx.waiter = w
	tx.nodes = append(tx.nodes[:0], node{})
	younger.pushLast(&tx.nodes[0], tx)
}
