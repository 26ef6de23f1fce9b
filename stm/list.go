package stm

// A list has the nodes of the transactions that wait for one Var to change, in the order in which they came. It is used under
// the guard.
type list struct{ first, last *node }

// A node is in one list, or in none.
type node struct {
	prev, next *node
	in         *list // nil: linked nowhere
	tx         *Tx   // which waits; nil: a mark, see markLocked
}

// A waiter is the suspension of a Tx that is linked.
type waiter interface{ resumeLocked() }

// pushLast links n behind all others.
func (l *list) pushLast(n *node) {
	if n.prev = l.last; n.prev != nil {
		n.prev.next = n
	} else {
		l.first = n
	}
	l.last, n.in = n, l
}

// unlink takes n off its list, and leaves it zero.
func (n *node) unlink() {
	l := n.in
	if l == nil {
		return
	}
	if n.prev != nil {
		n.prev.next = n.next
	} else {
		l.first = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	} else {
		l.last = n.prev
	}
	*n = node{}
}
