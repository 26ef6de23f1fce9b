package suspend

import "context"

// A Queue is a FIFO queue of suspended tasks, each waiting for a T and each having brought a P. It is used
// under one Guard, the caller's, which every method expects to be held. The zero Queue is empty.
//
// The nodes belong to the tasks, so queueing allocates nothing once a task has queued with these types
// before, and a queue is as large as the number of tasks in it. A task is in one queue at a time, and what is in a
// queue is resumed by way of the queue: a Resume of the Resumer itself leaves the node behind.
//
// What a waiter does, unless Wait does it: in block, lock the guard, look, Push, unlock. If Suspend returns an error: lock the
// guard, Remove, and if that reports false, a Resume met the waiter when it was cancelled already: it
// was passed over and nothing is owed. What a resumer does: lock the guard, Resume, and commit what the
// result says before unlocking. To take a waiter off, commit, and only then look at what its Resume says
// is the way to lose a value.
type Queue[T, P any] struct {
	head, tail *node[T, P]
	len        int
}

type node[T, P any] struct {
	next, prev *node[T, P]
	r          Resumer[T]
	payload    P
	linked     bool         // guarded by the queue's guard
	sole       bool         // r is known to the queue alone, so who holds the guard is the only one to resume it
	in         *Queue[T, P] // where it was pushed; the task's own. nil: free to be pushed
}

// Wait performs what s describes, for the calling task: it returns what Try returns, if that need not wait; otherwise it
// suspends the caller until it is resumed, or until ctx is done. Then, or if ctx is done already, it returns the error of
// the cancellation, the operation has had no effect, and nothing is left of it. With allowLazy, ctx may be one of those
// that AllowLazy is about.
//
// It is the direct way to what Do does by way of Select, and all that a blocking operation of a primitive consists of: lock
// the guard, try, queue, unlock, suspend, and remove what is left if that failed. Who is resumed in a Queue is resumed by
// way of that, which is quicker then than a Resume; the Resumer itself panics. (What Wait does of Suspend's own work it
// does in Suspend's order; the two are to be kept in step.)
func Wait[T any, S Source[T]](ctx context.Context, s S, allowLazy bool) (T, error) {
	if allowLazy {
		ctx = AllowLazy(ctx)
	}
	var done <-chan struct{} // this is ask, which the compiler does not inline
	over := false
	switch {
	case background(ctx):
	case lasting(ctx):
		over = ctx.Err() != nil
	default:
		done = ctx.Done()
		over = done != nil && closed(done)
	}
	if over {
		var zero T
		return zero, cancellation(ctx)
	}
	g := s.Guard()
	if g == nil {
		return Do(ctx, OpOf[T](s))
	}
again:
	g.Lock()
	if v, ok, err := s.Try(); ok {
		g.Unlock()
		return v, err
	}
	b := current()
	word, armed := b.armed(ctx, done)
	if !armed { // the task has not waited with ctx just before
		g.Unlock()
		if b == nil {
			return waitGoroutine[T](ctx, g, s)
		}
		if _, ok := b.arm(ctx); !ok {
			var zero T
			return zero, cancellation(ctx)
		}
		goto again
	}
	// The word is open and the registration there, so nothing foreign need be called under the guard.
	place := slotOf[T](b)
	place.done = b.last.done
	r := Resumer[T]{place, word}
	place.abandonNode()
	place.direct = true
	s.Enqueue(r)
	place.direct = false
	g.Unlock()
	for b.waits(word) {
		next, yield := b.leave()
		for next != nil {
			next()
			next, yield = b.leaver.Back()
		}
		if yield != nil {
			yield(struct{}{})
		}
	}
	if b.word.Load() == with(word, cancelled) {
		g.Lock()
		s.Remove(r)
		place.sole = false
		g.Unlock()
		var zero T
		return zero, cancellation(ctx)
	}
	return place.take()
}

// queued is a node, to its slot.
type queued interface{ release() }

func (n *node[T, P]) release() { n.in = nil }

// release makes the node of a suspension that has ended well, and is therefore unlinked, free again.
func (s *slot[T]) release() {
	if s.queued != nil {
		s.queued.release()
		s.queued = nil
	}
}

// abandonNode leaves to its queue a node that was not removed from it: its suspension failed, and its
// primitive did not do its part.
func (s *slot[T]) abandonNode() {
	if s.queued == nil {
		return
	}
	for i, x := range s.nodes {
		if x == any(s.queued) {
			s.nodes = append(s.nodes[:i:i], s.nodes[i+1:]...)
			break
		}
	}
	s.queued = nil
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

// PushFront puts r first, with p: for a waiter that was taken off, could not be served, and keeps its turn.
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
	if s.queued != nil {
		panic("suspend: Resumer pushed twice")
	}
	var n *node[T, P]
	for _, x := range s.nodes {
		if m, ok := x.(*node[T, P]); ok {
			n = m
			break
		}
	}
	if n == nil {
		n = new(node[T, P])
		s.nodes = append(s.nodes, n)
	}
	s.queued = n
	n.r, n.payload, n.linked, n.in = r, p, true, q
	if n.sole = s.direct; n.sole {
		s.sole = true
	}
	q.len++
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
	n.next, n.prev, n.linked = nil, nil, false
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
		n := q.head
		r, sole := n.r, n.sole
		p := q.unlink(n) // from here on the node is its task's
		if sole && r.resumeSole(v, err) || !sole && r.Resume(v, err) {
			return p, true
		}
	}
	return p, false
}

// resumeSole is Resume where nobody else can be resuming: the slot is written first, and no word is claimed for that. A
// waiter that is being cancelled leaves the slot alone until it has had the guard.
func (r Resumer[T]) resumeSole(v T, err error) bool {
	s := r.slot
	if r.word&statusMask == openLazily {
		s.sole = false
		return r.Resume(v, err)
	}
	s.v, s.err = v, err
	if !s.b.word.CompareAndSwap(r.word, after(r.word)) {
		var zero T
		s.v, s.err = zero, nil
		return false
	}
	s.b.task.Unpark()
	return true
}

// ResumeAll takes off all waiters, in order, resumes each with (v, err), and returns how many said true.
func (q *Queue[T, P]) ResumeAll(v T, err error) (resumed int) {
	for q.head != nil {
		if _, ok := q.resume(v, err); ok {
			resumed++
		}
	}
	return resumed
}

// Pop takes off the first waiter, for the caller to resume. The queue must not be empty.
func (q *Queue[T, P]) Pop() (Resumer[T], P) {
	n := q.head
	if n == nil {
		panic("suspend: Pop of an empty Queue")
	}
	r := n.r
	r.slot.sole = false
	return r, q.unlink(n) // from here on the node is its task's
}

// Head returns what the first waiter brought, for the caller to read or change under the guard; nil if the
// queue is empty.
func (q *Queue[T, P]) Head() *P {
	if q.head == nil {
		return nil
	}
	return &q.head.payload
}

// Remove takes r off and reports whether it was there; false says that a resumer has taken it off already.
// It is called by the waiter, after Suspend has returned an error, and not otherwise.
func (q *Queue[T, P]) Remove(r Resumer[T]) bool {
	if r.slot == nil || r.slot.queued == nil {
		return false
	}
	n, ok := r.slot.queued.(*node[T, P])
	if !ok || n.in != q || n.r != r {
		return false
	}
	linked := n.linked
	if linked {
		q.unlink(n)
	}
	r.slot.release()
	return linked
}

// Len returns the number of waiters, including those that are cancelled and have not removed themselves yet.
func (q *Queue[T, P]) Len() int { return q.len }
