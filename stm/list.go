package stm

import "github.com/braidgo/braid/internal/dlist"

// A list has the nodes of the transactions that wait for one Var to change, in the order in which they came. It is used under
// the guard.
type list struct{ dlist.List[*Tx] }

// A node is in one list, or in none. Its Value is the transaction that waits; nil: a mark, see markLocked.
type node struct {
	dlist.Node[*Tx]
	in *list // is set while it is linked
}

// A waiter is the suspension of a Tx that is linked.
type waiter interface{ resumeLocked() }

// pushLast links n, which is in no list, behind all others, for tx.
func (l *list) pushLast(n *node, tx *Tx) {
	n.Value, n.in = tx, l
	l.Push(&n.Node)
}

// unlink takes n off its list, and leaves it zero.
func (n *node) unlink() {
	if n.in != nil {
		n.in.Remove(&n.Node)
		*n = node{}
	}
}
