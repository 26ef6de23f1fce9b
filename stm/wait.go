package stm

import (
	"context"
	"slices"

	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/suspend"
)

// wait suspends the caller until something that tx has read has changed, which may be at once.
//
// No wake-up is lost: a commit changes a Var under the guard, and under the same guard the waiter looks whether anything has
// changed and links itself.
func (tx *Tx) wait(ctx context.Context) error {
	tx.requireReads()
	tx.stepDown()
	tx.dropWrites()
	_, err := suspend.Wait[struct{}](ctx, change{tx}, false)
	return err
}

func (tx *Tx) requireReads() {
	if len(tx.reads) == 0 { // no commit could end this wait
		panic("stm: Retry of a transaction that has read nothing")
	}
}

// dropWrites makes room for the nodes, and keeps nothing that a transaction which waits will not need.
func (tx *Tx) dropWrites() {
	stats.waits.Add(1)
	tx.truncate(0)
	tx.hooks = nil
	tx.nodes = slices.Grow(tx.nodes[:0], len(tx.reads))
}

// A change is the Source that is ready once something that tx has read has changed.
type change struct{ tx *Tx }

func (c change) Guard() *suspend.Guard               { return &guard }
func (c change) Try() (_ struct{}, ok bool, _ error) { return struct{}{}, !c.tx.validLocked(), nil }
func (c change) Remove(suspend.Resumer[struct{}])    { c.tx.unlinkLocked() }

func (c change) Enqueue(r suspend.Resumer[struct{}]) {
	c.tx.resumer = r
	c.tx.linkLocked(c.tx)
}

func (tx *Tx) resumeLocked() { tx.resumer.Resume(struct{}{}, nil) } // false: cancelled, and owed nothing

// linkLocked links tx to each Var that it has read, once, for w to be resumed. There is room for the nodes.
func (tx *Tx) linkLocked(w waiter) {
	tx.waiter = w
	for _, b := range tx.reads {
		l := &b.of.base().watched
		if last := l.Last(); last != nil && last.Value == tx { // tx is linked here already, by this call
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

// wakeLocked resumes the transactions that are linked before a node, and at most that number. Each is unlinked everywhere first. It
// returns how many more it might have resumed.
func (l *list) wakeLocked(before *dlist.Node[*Tx], most int) int {
	for n := l.First(); n != before && most > 0; {
		next := n.Next() // no node of the same transaction, since each is linked to a Var once
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

// markLocked links a mark, a node of tx without a transaction, behind the waiters of a Var that tx has yet to resume.
// Waiters behind the mark need no Resume, since they have seen what tx has written.
func (tx *Tx) markLocked(l *list) {
	tx.nodes = slices.Grow(tx.nodes, len(tx.writes)-len(tx.nodes)) // once: a node that is linked stays where it is
	tx.nodes = append(tx.nodes, node{})
	l.pushLast(&tx.nodes[len(tx.nodes)-1], nil)
}

// wakeRest resumes the waiters that a commit has not resumed, in portions: others may commit in between. A commit in
// between that writes the same Var resumes some of them itself, in their order.
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
