package stm

import (
	"context"
	"slices"

	"github.com/braidgo/braid/suspend"
)

// wait suspends the caller until something that tx has read has changed, which may be at once.
//
// No wake-up is lost: a commit changes a Var under the guard, and under the same guard the waiter looks whether anything has
// changed and links itself.
func (tx *Tx) wait(ctx context.Context) error {
	if len(tx.reads) == 0 {
		panic("stm: Retry of a transaction that has read nothing")
	}
	tx.stepDown()
	tx.truncate(0) // the waiter keeps nothing that will not be needed
	tx.hooks = nil
	tx.nodes = slices.Grow(tx.nodes[:0], len(tx.reads))
	_, err := suspend.Wait[struct{}](ctx, change{tx}, false)
	return err
}

// A change is the Source that is ready once something that tx has read has changed.
type change struct{ tx *Tx }

func (c change) Guard() *suspend.Guard               { return &guard }
func (c change) Try() (_ struct{}, ok bool, _ error) { return struct{}{}, !c.tx.validLocked(), nil }
func (c change) Remove(suspend.Resumer[struct{}])    { c.tx.unlinkLocked() }

func (c change) Enqueue(r suspend.Resumer[struct{}]) {
	c.tx.resumer = r
	c.tx.linkLocked()
}

// linkLocked links tx to each Var that it has read, once. There is room for the nodes.
func (tx *Tx) linkLocked() {
	for _, b := range tx.reads {
		l := b.watchers()
		if l.last != nil && l.last.tx == tx { // nobody else has come since this critical section began
			continue
		}
		tx.nodes = append(tx.nodes, node{tx: tx})
		l.pushLast(&tx.nodes[len(tx.nodes)-1])
	}
}

func (tx *Tx) unlinkLocked() {
	for i := range tx.nodes {
		tx.nodes[i].unlink()
	}
	tx.nodes = tx.nodes[:0]
}

// wakeLocked resumes all transactions that wait for this Var to change. Each is unlinked everywhere first.
func (l *list) wakeLocked() {
	for n := l.first; n != nil; {
		next := n.next // not one of the same transaction: each is linked to a Var once
		if tx := n.tx; tx != nil {
			tx.unlinkLocked()
			tx.resumer.Resume(struct{}{}, nil) // false: cancelled, and owed nothing
		}
		n = next
	}
}
