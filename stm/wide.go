package stm

import "slices"

// This file has the portions in which a transaction links to many Vars, and in which a commit resumes many waiters, so that none of them holds
// the guard for long. See portion.go for their sizes.

// linkWide links a wide transaction to all but the last portion of its reads, unless one of them has changed.
func (tx *Tx) linkWide() {
	for more := true; more; {
		guard.Lock()
		if tx.unchangedLocked(tx.linked + portion) {
			tx.linkLocked(tx.linked + portion)
		} else {
			tx.changed = true
		}
		more = !tx.changed && len(tx.reads)-tx.linked > portion
		guard.Unlock()
	}
}

// unlinkWide unlinks the nodes of a wide transaction in portions.
func (tx *Tx) unlinkWide() {
	for n := len(tx.nodes); n > 0; {
		rest := max(n-portion, 0)
		guard.Lock()
		for i := rest; i < n; i++ {
			tx.nodes[i].unlink()
		}
		guard.Unlock()
		n = rest
	}
	tx.nodes, tx.linked, tx.wide, tx.changed = tx.nodes[:0], 0, false, false
}

// markLocked appends a mark to l, if there are waiters: a node of tx whose Value is nil. Waiters before the mark must still be resumed. Waiters
// after the mark need no Resume, because they have seen the writes of tx. A mark at the end of l will do for tx, too.
func (tx *Tx) markLocked(l *list) {
	if l.First() == nil || l.Last().Value == nil {
		return
	}
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
