package stm

import (
	"context"
	"slices"

	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/suspend"
)

// wait suspends the caller until a Var that tx has read has changed. If such a change has happened already, wait returns at
// once.
//
// No wake-up is lost, because the waiter checks for changes and links its nodes in one critical section of the guard, under
// which every commit happens.
func (tx *Tx) wait(ctx context.Context) error {
	tx.requireReads()
	tx.stepDown()
	tx.dropWrites()
	_, err := suspend.Wait[struct{}](ctx, change{tx})
	return err
}

func (tx *Tx) requireReads() {
	if len(tx.reads) == 0 { // no commit could end this wait
		panic("stm: Retry of a transaction that has read nothing")
	}
}

// dropWrites drops the writes and hooks of tx before it waits, and allocates the space for its nodes.
func (tx *Tx) dropWrites() {
	stats.waits.Add(1)
	tx.truncate(0)
	tx.hooks = nil
	tx.nodes = slices.Grow(tx.nodes[:0], len(tx.reads))
}

// A change is a Source that is ready when a Var that tx has read has changed.
type change struct{ tx *Tx }

func (c change) Guard() *suspend.Guard               { return &guard }
func (c change) Try() (_ struct{}, ok bool, _ error) { return struct{}{}, !c.tx.validLocked(), nil }
func (c change) Remove(suspend.Resumer[struct{}])    { c.tx.unlinkLocked() }

func (c change) Enqueue(r suspend.Resumer[struct{}]) {
	c.tx.resumer = r
	c.tx.linkLocked(c.tx)
}

func (tx *Tx) resumeLocked() { tx.resumer.Resume(struct{}{}, nil) } // Resume returns false if the wait was cancelled

// linkLocked links tx once to each Var that it has read. The next commit to any of these Vars resumes w. The capacity of
// tx.nodes must suffice, because a linked node must not move.
func (tx *Tx) linkLocked(w waiter) {
	tx.waiter = w
	for _, b := range tx.reads {
		l := &b.of.base().watched
		if last := l.Last(); last != nil && last.Value == tx { // this call has already linked tx to the Var
			continue
		}
		tx.nodes = append(tx.nodes, node{})
		l.pushLast(&tx.nodes[len(tx.nodes)-1], tx)
	}
}

func (tx *Tx) unlinkLocked() {
	for i := range tx.nodes {
		tx.nodes[i].unlink()
	}
	tx.nodes, tx.waiter = tx.nodes[:0], nil
}

// wakeLocked resumes the transactions that precede the given node, or all if the node is nil, but not more than the
// parameter most. wakeLocked unlinks each transaction from all its Vars first. The result is the parameter most less the
// number of resumed transactions.
func (l *list) wakeLocked(before *dlist.Node[*Tx], most int) int {
	for n := l.First(); n != before && most > 0; {
		next := n.Next() // next belongs to another transaction, since no transaction has two nodes in a list
		if tx := n.Value; tx != nil {
			w := tx.waiter
			tx.unlinkLocked()
			w.resumeLocked()
			most--
		}
		n = next
	}
	return most
}

// markLocked appends a mark to l: a node of tx whose Value is nil. Waiters before the mark must still be resumed. Waiters
// after the mark need no Resume, because they have seen the writes of tx.
func (tx *Tx) markLocked(l *list) {
	tx.nodes = slices.Grow(tx.nodes, len(tx.writes)-len(tx.nodes)) // allocates at most once, since a linked node must not move
	tx.nodes = append(tx.nodes, node{})
	l.pushLast(&tx.nodes[len(tx.nodes)-1], nil)
}

// wakeRest resumes the remaining waiters in portions, so that other transactions can commit in between. If such a commit
// writes the same Var, it resumes some of these waiters itself, in order.
func (tx *Tx) wakeRest() {
	for i := range tx.nodes {
		for m, done := &tx.nodes[i], false; !done; {
			guard.Lock()
			if done = m.in.wakeLocked(&m.Node, portion) > 0; done {
				m.unlink()
			}
			guard.Unlock()
		}
	}
	tx.nodes = tx.nodes[:0]
}
