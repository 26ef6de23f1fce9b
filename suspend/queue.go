package suspend

import (
	"iter"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/prefetch"
)

// A Queue is a FIFO queue of suspended tasks. Each task waits for a T and brings a payload of type P. The zero Queue is empty. The
// caller of each method must hold the Guard of the object that contains the Queue.
//
// The nodes belong to the tasks. Queueing allocates nothing if the task has queued with these types before. If other code calls
// Resume on the Resumer, the node stays in the Queue, and Len counts it until the Queue reaches it.
//
// A waiter does the following, unless it calls Wait. Its block locks the guard, tries the operation, calls Push and unlocks. If
// Suspend returns an error, the waiter locks the guard and calls Remove. If Remove returns false, a resumer has passed over the
// waiter, which has no wake-up to pass on.
//
// A resumer locks the guard, calls Resume, and commits the result before it unlocks. It must not commit before it checks the
// result of Resume; otherwise a value can be lost.
type Queue[T, P any] struct {
	head, tail *node[T, P]
	len        int
}

type node[T, P any] struct {
	next, prev *node[T, P]
	r          Resumer[T]
	payload    P
	v          T            // the value with which the queue has resumed r
	in         *Queue[T, P] // the queue of the last Push, or nil if the node is free; only the task uses this field
}

func (n *node[T, P]) free()      { n.in = nil }
func (n *node[T, P]) queue() any { return n.in }

func (n *node[T, P]) takeValue() T {
	var zero T
	v := n.v
	n.v, n.in = zero, nil
	return v
}

// Push appends r with the payload p. It must be called in the block or the Enqueue method that received r, once for each Resumer.
func (q *Queue[T, P]) Push(r Resumer[T], p P) {
	n, ok := r.slot.node.(*node[T, P])
	if !ok || r.slot.queued {
		n = otherNode[T, P](r.slot)
	}
	r.slot.queued = true
	n.r, n.payload, n.in = r, p, q
	if n.prev = q.tail; n.prev != nil {
		n.prev.next = n
	} else {
		q.head = n
	}
	q.tail = n
	q.len++
}

// PushFront is like Push, but puts r first. It is for a waiter that was resumed but could not be served, and suspends again without
// losing its turn.
func (q *Queue[T, P]) PushFront(r Resumer[T], p P) {
	q.Push(r, p)
	if n := q.tail; n.prev != nil {
		q.tail, n.prev.next = n.prev, nil
		n.prev, n.next, q.head.prev = nil, q.head, n
		q.head = n
	}
}

// otherNode finds a node of this type among the older nodes of s, or allocates one, and stores it in s.node.
func otherNode[T, P any](s *slot[T]) (n *node[T, P]) {
	if s.queued {
		panic("suspend: Resumer pushed twice")
	}
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

// Resume takes waiters off the queue, the longest waiting first, until it has resumed one with (v, err), and returns the payload
// of this waiter. If no waiter could be resumed, Resume returns false, and the queue is empty.
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

// ResumeHead takes the first waiter off the queue. It returns the waiter's payload, and whether the waiter was resumed with (v,
// err). The queue must not be empty.
func (q *Queue[T, P]) ResumeHead(v T, err error) (p P, ok bool) {
	if q.head == nil {
		panic("suspend: ResumeHead of an empty Queue")
	}
	return q.resumeHead(v, err)
}

// resumeHead writes the value into the node before the CAS that decides whether the waiter is resumed. Nothing else writes there,
// since a cancelled task uses its node only under the guard. If the slot is shared, if err is not nil, or if the context has
// ended, resumeHead calls Resumer.resume instead.
func (q *Queue[T, P]) resumeHead(v T, err error) (p P, ok bool) {
	n := q.head
	if q.len > prefetch.Crowd {
		n.ahead()
	}
	r := n.r
	s := r.slot
	if s.shared || err != nil || r.done != nil && atomicx.Closed(r.done) {
		p = q.unlink(n) // the queue does not use n from here on
		return p, r.resume(v, err, true)
	}
	p = q.unlink(n)
	n.v = v
	if s.b.word.deliverInNode(r.wait) { // the node belongs to the task from here on
		s.b.task.Unpark()
		return p, true
	}
	var zero T
	n.v = zero
	return p, false
}

// ahead prefetches the cache lines that are needed to resume the next waiter, and the addresses of the waiter behind it.
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

// ResumeAll takes all waiters off the queue, in order, and resumes each with (v, err). It returns the number of waiters that were
// resumed; cancelled waiters do not count.
func (q *Queue[T, P]) ResumeAll(v T, err error) (resumed int) {
	for q.head != nil {
		if _, ok := q.resumeHead(v, err); ok {
			resumed++
		}
	}
	return resumed
}

// DropEnded takes waiters off the head of the queue until the wait of the first waiter has not ended, and reports whether it took any
// off.
func (q *Queue[T, P]) DropEnded() (dropped bool) {
	for q.head != nil && q.head.r.ended() {
		q.unlink(q.head)
		dropped = true
	}
	return dropped
}

// Pending returns an iterator over the payloads of the waiters whose wait has not ended. The loop must not change the queue.
func (q *Queue[T, P]) Pending() iter.Seq[P] {
	return func(yield func(P) bool) {
		for n := q.head; n != nil; n = n.next {
			if !n.r.ended() && !yield(n.payload) {
				return
			}
		}
	}
}

// Head returns a pointer to the payload of the first waiter, or nil if the queue is empty. The caller may read and change the
// payload while it holds the guard.
func (q *Queue[T, P]) Head() *P {
	if q.head == nil {
		return nil
	}
	return &q.head.payload
}

// Remove takes r off the queue, and reports whether r was still there. False means that a resumer has taken r off. Only the waiter
// may call Remove, after its wait has failed or its Source has lost a Select.
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
	r.slot.freeNode()
	return linked
}

// Len returns the number of waiters, including cancelled waiters that have not yet removed themselves.
func (q *Queue[T, P]) Len() int { return q.len }
