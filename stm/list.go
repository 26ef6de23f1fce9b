package stm

import "github.com/braidgo/braid/internal/dlist"

// A list is a queue of waiting transactions, in order of arrival: the waiters for a Var, or for the end of the elder. The
// guard protects every list.
type list struct{ dlist.List[*Tx] }

// A node is in at most one list. Its Value is the waiting transaction, or nil for a mark (see markLocked).
type node struct {
	dlist.Node[*Tx]
	in *list // the list of the node, or nil
}

// A waiter is the Tx or the operation that resumeLocked resumes.
type waiter interface{ resumeLocked() }

// pushLast appends n to l as a node of tx. The node must be in no list.
func (l *list) pushLast(n *node, tx *Tx) {
	n.Value, n.in = tx, l
	l.Push(&n.Node)
}

// unlink removes n from its list, if it is in a list, and zeroes n.
func (n *node) unlink() {
	if n.in != nil {
		n.in.Remove(&n.Node)
		*n = node{}
	}
}
