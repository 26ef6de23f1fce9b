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
// which every commit happens. A wide transaction has read so much that this would hold up all commits. It checks and links
// most of its reads in earlier critical sections, a portion in each, and a later commit to a linked Var sets tx.changed.
func (tx *Tx) wait(ctx context.Context) error {
	tx.prepareWait()
	_, err := suspend.Wait[struct{}](ctx, change{tx})
	return err
}

func (tx *Tx) requireReads() {
	if len(tx.reads) == 0 { // no commit could end this wait
		panic("stm: Retry in a transaction that has read no Var")
	}
}

// prepareWait does what is possible before the critical section in which tx begins to wait. It drops the writes and hooks,
// allocates the space for the nodes, and links a wide transaction to all but the last portion of its reads.
func (tx *Tx) prepareWait() {
	tx.requireReads()
	tx.stepDown()
	stats.waits.Add(1)
	tx.truncate(0)
	tx.hooks = nil
	tx.nodes = slices.Grow(tx.nodes[:0], len(tx.reads))
	tx.wide = len(tx.reads) > narrow
	if tx.wide {
		tx.linkWide()
	}
}

// A change is a Source that is ready when a Var that tx has read has changed.
type change struct{ tx *Tx }

func (c change) Guard() *suspend.Guard { return &guard }
func (c change) Try() (_ struct{}, ok bool, _ error) {
	return struct{}{}, !c.tx.unchangedLocked(len(c.tx.reads)), nil
}
func (c change) Remove(suspend.Resumer[struct{}]) { c.tx.stopWaitLocked() }

func (c change) Enqueue(r suspend.Resumer[struct{}]) {
	c.tx.resumer = r
	c.tx.waitLocked(c.tx)
}

func (tx *Tx) resumeLocked() { tx.resumer.Resume(struct{}{}, nil) } // Resume returns false if the wait was cancelled

// unchangedLocked reports whether no linked Var has changed, and no Var in tx.reads[tx.linked:to].
func (tx *Tx) unchangedLocked(to int) bool {
	if tx.now == clock.Load() {
		return true
	}
	for _, b := range tx.reads[tx.linked:to] {
		if !b.current() {
			return false
		}
	}
	return !tx.changed
}

// waitLocked links tx to the rest of its reads. The next commit to any Var that tx has read resumes w.
func (tx *Tx) waitLocked(w waiter) {
	tx.waiter = w
	tx.linkLocked(len(tx.reads))
}

// linkLocked links tx to each Var in tx.reads[tx.linked:to]. Only a wide transaction may get several nodes in the list of a
// Var. The capacity of tx.nodes must suffice, because a linked node must not move.
func (tx *Tx) linkLocked(to int) {
	for _, b := range tx.reads[tx.linked:to] {
		l := &b.of.base().watched
		if last := l.Last(); last != nil && last.Value == tx { // this critical section has already linked tx to the Var
			continue
		}
		tx.nodes = append(tx.nodes, node{})
		l.pushLast(&tx.nodes[len(tx.nodes)-1], tx)
	}
	tx.linked = to
}

// stopWaitLocked ends the wait of tx. A wide transaction unlinks its nodes later, when it is reset.
func (tx *Tx) stopWaitLocked() {
	if tx.wide {
		tx.waiter = nil
	} else {
		tx.unlinkLocked()
	}
}

func (tx *Tx) unlinkLocked() {
	for i := range tx.nodes {
		tx.nodes[i].unlink()
	}
	tx.nodes, tx.linked, tx.waiter = tx.nodes[:0], 0, nil
}

// wakeLocked resumes the transactions that precede the given node, or all if the node is nil, but it visits no more nodes
// than the parameter most. wakeLocked unlinks each transaction from all its Vars first, but a wide one only from this Var,
// since its task unlinks the other nodes. The result is the parameter most less the number of visited nodes.
func (l *list) wakeLocked(before *dlist.Node[*Tx], most int) int {
	for n := l.First(); n != before && most > 0; {
		next := n.Next() // next is not unlinked here, since only a wide transaction has two nodes in a list
		if tx := n.Value; tx != nil {
			w := tx.waiter
			if tx.wide {
				tx.changed, tx.waiter = true, nil
				l.Remove(n)
			} else {
				tx.unlinkLocked()
			}
			if w != nil { // otherwise tx does not wait yet, or does not wait any more
				w.resumeLocked()
			}
			most--
		}
		n = next
	}
	return most
}
