package stm

import (
	"context"
	"math"

	"github.com/braidgo/braid/suspend"
)

// A long transaction may fail again and again, since shorter transactions commit while it runs. A transaction that has
// failed patience times is the elder, if there is none: until it has ended, all others must wait before they commit, so
// that its next run succeeds. An elder that returns Retry gives up its place before it waits.
//
// -F> a failed run, -E> the end of the elder, -B> another commit
//
//	nobody  -F> elder     it has failed patience times
//	elder   -B> elder     the other waits among the younger, unless it must not suspend
//	elder   -E> nobody    all the younger are resumed; they commit, or fail and run again
//
// Debt: the elder owes a Resume to each of the younger, however it ends.
var (
	elder   *Tx  // under the guard
	younger list // under the guard
)

const patience = 10

// age counts a run that others have made vain.
func (tx *Tx) age() {
	tx.failed()
	tx.claim()
}

func (tx *Tx) failed() {
	tx.fails++
	stats.conflicts.Add(1)
}

// claim makes tx the elder, if it has failed often enough and there is none.
func (tx *Tx) claim() {
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

// stepDown ends what age has begun.
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

// all is more than can wait.
const all = math.MaxInt

// giveWay suspends the caller until tx may commit.
func (tx *Tx) giveWay(ctx context.Context) error {
	_, err := suspend.Wait[struct{}](ctx, turn{tx}, false)
	return err
}

// A turn is the Source that is ready once there is no other elder.
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

// queueLocked links tx behind the elder, for w to be resumed.
func (tx *Tx) queueLocked(w waiter) {
	tx.waiter = w
	tx.nodes = append(tx.nodes[:0], node{})
	younger.pushLast(&tx.nodes[0], tx)
}
