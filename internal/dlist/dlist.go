// Package dlist provides a doubly linked list whose nodes are allocated by the caller. Adding a node allocates nothing,
// and removing a node takes constant time.
package dlist

// A Node holds a value and belongs to at most one List. The zero Node is in no list.
type Node[T any] struct {
	prev, next *Node[T]
	Value      T
}

// Next returns the node after n, or nil if n is the last.
func (n *Node[T]) Next() *Node[T] { return n.next }

// A List is a sequence of nodes. The zero List is empty.
type List[T any] struct{ first, last *Node[T] }

// First returns the first node, or nil if l is empty.
func (l *List[T]) First() *Node[T] { return l.first }

// Last returns the last node, or nil if l is empty.
func (l *List[T]) Last() *Node[T] { return l.last }

// Push appends n to l. The node must not be in any list.
func (l *List[T]) Push(n *Node[T]) {
	if n.prev = l.last; n.prev != nil {
		n.prev.next = n
	} else {
		l.first = n
	}
	l.last = n
}

// Has reports whether n is in l. The node must not be in any other list.
func (l *List[T]) Has(n *Node[T]) bool { return n.prev != nil || l.first == n }

// Remove removes n from l, and reports whether n was in l. The node must not be in any other list.
func (l *List[T]) Remove(n *Node[T]) bool {
	if !l.Has(n) {
		return false
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
	n.prev, n.next = nil, nil
	return true
}

// Pop removes the first node and returns it, or returns nil if l is empty.
func (l *List[T]) Pop() *Node[T] {
	n := l.first
	if n != nil {
		l.Remove(n)
	}
	return n
}

// Append moves all nodes of m, in order, to the end of l.
func (l *List[T]) Append(m *List[T]) {
	switch {
	case m.first == nil:
		return
	case l.first == nil:
		*l = *m
	default:
		l.last.next, m.first.prev = m.first, l.last
		l.last = m.last
	}
	*m = List[T]{}
}
