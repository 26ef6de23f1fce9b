package fetch

import "github.com/braidgo/braid/suspend"

// joinLocked adds w to the waiters of q, which is new, pending or open.
func (w *waiter) joinLocked(l *link, q *request) {
	if q.state == open && q.waiters.First() == nil {
		q.b.needed++
	}
	l.q, l.Value = q, w
	q.waiters.Push(&l.Node)
	w.left++
	if w.d.settled && q.state == pending && !q.t.opts.Immediate && !w.member {
		w.member = true
		w.d.growLocked()
	}
	if w.mark != nil {
		q.markLocked(w.mark)
	}
	switch {
	case q.d == nil: // q is new
		w.d.addLocked(q)
	case q.state == pending && q.d != w.d && w.d.settled: // the scheduler of q.d might not run until this goroutine continues
		w.d.addLocked(q)
	}
}

// leaveLocked removes w from all its requests. A pending request without waiters is dropped, and w.pay later cancels a batch
// without waiters.
func (w *waiter) leaveLocked() {
	for i := range w.links {
		l := &w.links[i]
		q := l.q
		if l.Value == nil || !q.waiters.Remove(&l.Node) {
			continue
		}
		if w.left--; q.waiters.First() != nil {
			continue
		}
		switch b := q.b; {
		case q.state == pending:
			q.d.pendingLocked(q).Remove(&q.node)
			q.forgetLocked()
			q.t.s.stats.Dropped++
		case q.state == open && !(b.kept && b.started):
			if b.needed--; b.needed == 0 {
				b.cancelLocked()
				w.stop = append(w.stop, b)
			}
		}
	}
}

// lookAtContext reports whether w's context is done, even if the context has not resumed w yet. A context that panics counts as
// not done, so that the panic affects no other task.
func (w *waiter) lookAtContext() (done bool) {
	defer func() { _ = recover() }()
	return suspend.Err(w.ctx) != nil
}
