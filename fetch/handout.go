package fetch

// handLocked hands out the answers. If the parameter first is true, handLocked stops after it has resumed one task. That task
// then hands out the remaining answers, so that all tasks of an ordered driver are resumed on the driver's goroutine before any
// of them continues.
func (r *round) handLocked(first bool) bool {
	for ; r.requests.First() != nil; r.requests.Pop() {
		q := r.requests.First().Value
		if q.state == back {
			q.doneLocked()
		}
		if q.state != done {
			continue
		}
		for n := q.waiters.Pop(); n != nil; n = q.waiters.Pop() {
			w := n.Value
			if w.left--; w.left > 0 {
				continue
			}
			if !first {
				w.r.Resume(struct{}{}, nil)
				continue
			}
			if w.duty = r; w.r.Resume(struct{}{}, nil) {
				return true
			}
			w.duty = nil // the wait was cancelled
		}
	}
	return false
}

func (q *request) doneLocked() {
	q.state = done
	if q.passing {
		q.t.forgetLocked(q)
	}
}

// pay does the work that w has taken over: it hands out the answers of a round and cancels batches. pay is called after the
// wait has ended, so that no lock is held.
func (w *waiter) pay() {
	if r := w.duty; r != nil {
		g := &w.d.s.guard
		g.Lock()
		r.handLocked(false)
		r.overLocked()
		g.Unlock()
	}
	cancelAll(w.stop, nil)
}

// resumeLocked removes the waiters of q and resumes each waiter that waits for no other request. If foreignOnly is true,
// resumeLocked skips the waiters of q's own driver.
func (q *request) resumeLocked(foreignOnly bool) {
	for n := q.waiters.First(); n != nil; {
		next, w := n.Next(), n.Value
		if !foreignOnly || w.d != q.d {
			q.waiters.Remove(n)
			if w.left--; w.left == 0 {
				w.r.Resume(struct{}{}, nil)
			}
		}
		n = next
	}
}
