package suspend

import (
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/prefetch"
)

// A Queue is a FIFO queue of suspended tasks. Each waits for a T and brings a P. It is used under one Guard, the caller's, which every
// method expects to be held. The zero Queue is empty.
//
// The nodes belong to the tasks, so queueing allocates nothing once a task has queued with these types before, and the size of a queue
// is the number of its tasks. A task waits in one queue, and its queue resumes it. A Resume of the Resumer itself leaves the node
// behind. Len counts that node until the queue comes to it.
//
// A waiter does the following, unless Wait does it. In block: lock the guard, look, Push, unlock. If Suspend returns an error: lock the
// guard and Remove. If Remove reports false, a Resume met the waiter when it was already cancelled: it was passed over, and nothing is
// owed.
//
// A resumer locks the guard, calls Resume, and commits the result before it unlocks. It must not take a waiter off, commit, and look at
// the result of Resume afterwards: that loses a value.
type Queue[T, P any] struct {
	head, tail *node[T, P]
	len        int
}

type node[T, P any] struct {
	next, prev *node[T, P]
	r          Resumer[T]
	payload    P
	v          T            // the value with which the queue has resumed r
	in         *Queue[T, P] // where it was pushed; the task's own. nil: free to be pushed
}

func (n *node[T, P]) release()   { n.in = nil }
func (n *node[T, P]) queue() any { return n.in }

func (n *node[T, P]) take() T {
	var zero T
	v := n.v
	n.v, n.in = zero, nil
	return v
}

// Push puts r last, with p. It is called in the block that r was given to; a Resumer is pushed once.
func (q *Queue[T, P]) Push(r Resumer[T], p P) {
	n := q.node(r, p)
	if n.prev = q.tail; n.prev != nil {
		n.prev.next = n
	} else {
		q.head = n
	}
	q.tail = n
}

// PushFront is Push, but puts r first: for a waiter that was resumed, could not be served, and suspends again in its turn.
func (q *Queue[T, P]) PushFront(r Resumer[T], p P) {
	n := q.node(r, p)
	if n.next = q.head; n.next != nil {
		n.next.prev = n
	} else {
		q.tail = n
	}
	q.head = n
}

// node finds the task's node for this type of queue, or makes it.
func (q *Queue[T, P]) node(r Resumer[T], p P) *node[T, P] {
	s := r.slot
	if s.queued {
		panic("suspend: Resumer pushed twice")
	}
	n, ok := s.node.(*node[T, P])
	if !ok {
		n = otherNode[T, P](s)
	}
	s.queued = true
	n.r, n.payload, n.in = r, p, q
	q.len++
	return n
}

// otherNode finds a node of this type among the older nodes of s, or makes it, and puts it first.
func otherNode[T, P any](s *slot[T]) (n *node[T, P]) {
	for l := &s.nodes; *l != nil; l = &(*l).next {
		if n, ok := (*l).x.(*node[T, P]); ok {
			if (*l).x = s.node; s.node == nil {
				*l = (*l).next
			}
			s.node = n
			return n
		}
	}
	if s.node != nil {
		s.nodes = &list{s.node, s.nodes}
	}
	n = new(node[T, P])
	s.node = n
	return n
}

func (q *Queue[T, P]) unlink(n *node[T, P]) (p P) {
	if n.prev != nil {
		n.prev.next = n.next
	} else {
		q.head = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	} else {
		q.tail = n.prev
	}
	n.next, n.prev = nil, nil
	p, n.payload = n.payload, p
	q.len--
	return p
}

// Resume takes off one waiter after another, the longest waiting first, until one is resumed with (v, err),
// and returns what that one brought. It reports false, and the queue is empty, if none was.
func (q *Queue[T, P]) Resume(v T, err error) (p P, ok bool) {
	if q.head == nil {
		return p, false
	}
	return q.resume(v, err)
}

func (q *Queue[T, P]) resume(v T, err error) (p P, ok bool) {
	for q.head != nil {
		if p, ok := q.resumeHead(v, err); ok {
			return p, true
		}
	}
	return p, false
}

// ResumeHead takes off the first waiter, and returns its P and whether it was resumed with (v, err). The queue must not be
// empty.
func (q *Queue[T, P]) ResumeHead(v T, err error) (p P, ok bool) {
	if q.head == nil {
		panic("suspend: ResumeHead of an empty Queue")
	}
	return q.resumeHead(v, err)
}

// resumeHead leaves the value in the node, which nothing else writes, before the CAS that decides. A cancelled task leaves the
// node alone until it has had the guard. If the slot is shared, or a context is done, it
// leaves the decision to the Resumer.
func (q *Queue[T, P]) resumeHead(v T, err error) (p P, ok bool) {
	n := q.head
	if q.len > prefetch.Crowd {
		n.ahead()
	}
	r := n.r
	s := r.slot
	if s.shared || err != nil || r.done != nil && atomicx.Closed(r.done) {
		p = q.unlink(n) // the task owns the node from here on
		return p, r.resume(v, err, true)
	}
	p = q.unlink(n)
	n.v = v
	if s.b.word.deliverInNode(r.wait) { // the task owns the node from here on
		s.b.task.Unpark()
		return p, true
	}
	var zero T
	n.v = zero
	return p, false
}

// ahead prefetches the lines for resuming the next waiter, and the addresses of the waiter after it.
func (n *node[T, P]) ahead() {
	if n = n.next; n == nil {
		return
	}
	prefetch.Line(n.r.slot.b)
	if n = n.next; n != nil {
		prefetch.Line(n.r.slot)
		prefetch.Line(n.next)
	}
}

// ResumeAll takes off all waiters, in order, resumes each with (v, err), and returns how many said true.
func (q *Queue[T, P]) ResumeAll(v T, err error) (resumed int) {
	for q.head != nil {
		if _, ok := q.resumeHead(v, err); ok {
			resumed++
		}
	}
	return resumed
}

// Pop takes off the first waiter, for the caller to resume by its Resumer. ResumeHead is quicker, and the task can use its
// node again. The queue must not be empty.
func (q *Queue[T, P]) Pop() (Resumer[T], P) {
	n := q.head
	if n == nil {
		panic("suspend: Pop of an empty Queue")
	}
	r := n.r
	return r, q.unlink(n)
}

// Head returns the P of the first waiter, for the caller to read or change under the guard. It is nil if the queue is
// empty.
func (q *Queue[T, P]) Head() *P {
	if q.head == nil {
		return nil
	}
	return &q.head.payload
}

// Remove takes r off and reports whether it was there; false says that a resumer has taken it off already.
// Only the waiter calls it, after its wait has failed or its Source has lost a Select.
func (q *Queue[T, P]) Remove(r Resumer[T]) bool {
	if r.slot == nil || !r.slot.queued {
		return false
	}
	n, ok := r.slot.node.(*node[T, P])
	if !ok || n.in != q || n.r != r {
		return false
	}
	linked := n.prev != nil || q.head == n
	if linked {
		q.unlink(n)
	}
	r.slot.release()
	return linked
}

// Len returns the number of waiters, including cancelled waiters that have not removed themselves yet.
func (q *Queue[T, P]) Len() int { return q.len }
