package fetch

import (
	"context"
	"slices"

	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/suspend"
)

// A round of fetch.
//
// A round is a number of requests that are sent together and handed out together. Everything is decided in step 5,
// where this file begins. A function without a file name is below.
//  1. A Get checks its context (frame.check, records.go), and returns an answer that the session remembers without a
//     wait (answered, get.go). ErrNoSession: the context has no session. ErrInSource: the context is a source's, whose
//     round would wait for itself. ErrEnded: the session is over (call.Try).
//  2. Otherwise the task suspends (call.wait), in mode Direct after it has run the source itself, as in step 7. joinLocked
//     adds its waiter to a request. Two Gets of a key share a request, so that a batch has no key twice; an Effect shares none.
//  3. addLocked lists a new request as pending with the driver of the task: as a read, or as a write of an Effect. If
//     the mode is Immediate or Direct, the request gets a batch and a round alone, without steps 4 to 6. armLocked arms
//     a quiet driver; a driver that is sending or busy is armed when that is over. If a goroutine outside a Run joins a
//     pending request of a Run, the request moves to the settled driver, as the scheduler of the Run may not run until
//     that goroutine goes on.
//  4. The driver is quiescent: its scheduler has nothing runnable (orderedIdle), all tasks of its group wait
//     (idle.Group), or the time to settle is over (settle.go). Each of these calls idle.
//  5. idle returns if the driver is not armed, if its Run or session has ended, or if a task of its group is runnable
//     again: the last task to park then calls it anew. Contexts that resume their waiters late are looked at without
//     the guard, since they are foreign code. A waiter whose context is done leaves; a context that panics counts as
//     not done.
//  6. sendLocked makes a batch for each source, and more batches where MaxBatch is less than the keys. Writes go only
//     if no read is pending, so that these reads see the state before the writes. With Rounds the driver is busy now.
//     With Eager each batch is handed out alone, and the driver may send again. A batch beyond MaxOpen waits in the
//     queue of its table.
//  7. run calls the source, unless the batch was cancelled first, and answer makes an answer for each key (both in
//     batch.go):
//     - ErrNotFound: the source returned nil, and did not answer this key.
//     - An error that load returns is the answer to every key but those Failed with an error other than ErrNotFound.
//     - A panic of load is raised in every Get of the batch, whatever was Set.
//     - ErrAbandoned: load called runtime.Goexit.
//     - If the call's context has ended, its cause takes the place of the returned error, and of ErrNotFound; the
//       ErrEnded of a Close takes the place of every error.
//     Each of these but the panic is in an *Error. A session remembers errors and panics like values, but Transient
//     errors, context.Canceled, the errors of a call whose context has ended, and all answers of a Fresh source are not
//     remembered.
//  8. finish makes the requests back, and resumes waiters of other drivers at once: they must not wait for a round of
//     this driver. When the last batch of the round is over, backLocked hands the answers out in the order of asking. A
//     waiter that lacks another answer stays suspended. In an ordered Run the first resumed task hands out the rest
//     (pay), so that all are runnable before any goes on.
//  9. overLocked ends the round and arms the driver for what is pending by then. It must be last: otherwise the tasks
//     that resume first and park again would make a small round.
//
// What ends early:
//   - A context: it wakes its waiting Get as any wait of package suspend, and the Get fails at once with the error of the
//     cancellation. leaveLocked takes its waiter off. A pending request without waiters is forgotten and never sent. A
//     batch that nobody needs is cancelled (pay) and its answers are dropped, except an Effect or a caller's Direct call
//     that has started. If others need the batch, all of it is answered and remembered.
//   - A Run: its pending requests, which others wait for, go to the settled driver; its batches without waiters are
//     cancelled, but a started Effect is not. The Run returns when all of its batches are over (end).
//   - A session: pending requests fail with ErrEnded, open batches are cancelled with it as the cause, and Close waits
//     for them.
//
// What is not proved:
//   - That a round ends: a source that ignores its context holds up the round, the end of the Run, and Close.
//   - That a round begins: a task that waits natively counts as running, and holds up the round of its Run.
//   - That a round is as large as it could be: a task that a timer or another scheduler resumes just after step 5 is in
//     the next round, and the time to settle is a guess about other goroutines.
//   - That sources agree: the batches of a round run in no order and may see different states of what they read. Nor is
//     there an order between Effects of two sources.

// idle is called when none of the driver's tasks is runnable. It sends the pending requests.
//
// Here we have a choice. The reads go first, so that they see the state before the writes beside them: writes go when no read is
// pending. With Rounds nothing goes while a round is open: answers that are on their way may make more tasks ask, and one batch
// is better than two.
func (d *driver) idle() {
	s := d.s
	s.guard.Lock()
	if d.state != armed || d.ended || s.ended || d.group != nil && !d.group.Idle() {
		s.guard.Unlock()
		return
	}
	d.state = sending
	list := &d.reads
	if list.First() == nil {
		list = &d.writes
	}
	var unsure []*waiter
	for q := list.First(); q != nil; q = q.Next() {
		for w := q.Value.waiters.First(); w != nil; w = w.Next() {
			if !w.Value.prompt {
				unsure = append(unsure, w.Value)
			}
		}
	}
	if unsure != nil { // a context of package context resumes its waiters late
		s.guard.Unlock()
		late := slices.DeleteFunc(unsure, func(w *waiter) bool { return !w.lookAtContext() })
		s.guard.Lock()
		for _, w := range late {
			w.leaveLocked()
		}
	}
	start := d.sendLocked(list)
	s.guard.Unlock()
	start.beginAll()
}

// sendLocked makes batches of a list of requests, and returns the first batch that can begin.
func (d *driver) sendLocked(list *dlist.List[*request]) (start *batch) {
	d.state = quiet
	if list.First() == nil {
		d.armLocked()
		return nil
	}
	d.s.stats.Rounds++
	r := &round{d: d, number: d.s.stats.Rounds}
	if r.requests.Append(list); d.policy == Rounds {
		d.state, r.holds = busy, true
	}
	var batches *batch
	last := &batches
	for n := r.requests.First(); n != nil; n = n.Next() {
		t := n.Value.t
		if t.filling == nil || len(t.filling.requests) == t.opts.MaxBatch {
			t.filling = newBatch(t, r)
			*last, last = t.filling, &t.filling.then
		}
		t.filling.addLocked(n.Value)
	}
	last = &start
	for b := batches; b != nil; b = b.then {
		b.t.filling = nil
		if d.policy == Eager {
			b.round = &round{d: d, number: r.number}
			for _, q := range b.requests {
				r.requests.Remove(&q.node)
				b.round.requests.Push(&q.node)
			}
		}
		if b.openLocked() {
			*last, last = b, &b.then
		}
	}
	*last = nil
	d.armLocked()
	return start
}

// backLocked says that one more batch of r is back.
func (r *round) backLocked() {
	if r.open--; r.open > 0 {
		return
	}
	if r.d.ordered && r.handLocked(true) {
		return // the task that was resumed hands out the rest
	}
	r.handLocked(false)
	r.overLocked()
	r.d.rouseLocked()
}

// handLocked hands out the answers. With first it stops after the first task that it has resumed, which hands out the rest. So all
// tasks of an ordered driver are resumed on its own goroutine, before any of them goes on.
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
			w.duty = nil // it was cancelled
		}
	}
	return false
}

// doneLocked is the end of a request that is back.
func (q *request) doneLocked() {
	q.state = done
	if q.passing {
		q.t.forgetLocked(q)
	}
}

// overLocked ends the round, after the last answer is handed out. Otherwise the tasks that resume first and park again
// would make a small round.
func (r *round) overLocked() {
	if r.holds {
		r.d.state = quiet
	}
	r.d.armLocked()
}

// joinLocked adds w to the waiters of q, which is new, pending or open.
func (w *waiter) joinLocked(l *link, q *request) {
	if q.state == open && q.waiters.First() == nil {
		q.b.needed++
	}
	l.q, l.Value = q, w
	q.waiters.Push(&l.Node)
	w.left++
	q.markLocked(w.mark)
	switch {
	case q.d == nil: // it is new
		w.d.addLocked(q)
	case q.state == pending && q.d != w.d && w.d.settled: // the scheduler of q.d may not run until this goroutine goes on
		w.d.addLocked(q)
	}
}

// addLocked makes q a pending request of d, also if another driver has it. If its source is Immediate, it goes out at once.
func (d *driver) addLocked(q *request) {
	if q.d != nil {
		q.d.pendingLocked(q).Remove(&q.node)
	}
	if q.d = d; q.t.opts.Mode >= Immediate {
		if b := aloneLocked(q); b.started {
			goroutine(b.runAll)
		}
		return
	}
	q.node.Value = q
	d.pendingLocked(q).Push(&q.node)
	d.armLocked()
}

// pendingLocked returns the list for requests like q.
func (d *driver) pendingLocked(q *request) *dlist.List[*request] {
	if q.t.write {
		return &d.writes
	}
	return &d.reads
}

// aloneLocked makes a batch of one request, which the caller begins if it has started.
func aloneLocked(q *request) *batch {
	r := &round{d: q.d}
	b := newBatch(q.t, r)
	b.addLocked(q)
	q.node.Value = q
	r.requests.Push(&q.node)
	b.openLocked()
	return b
}

// armLocked arranges for a call of idle once nothing is runnable, if requests are pending.
func (d *driver) armLocked() {
	if d.reads.First() == nil && d.writes.First() == nil || d.state != quiet || d.s.ended {
		return
	}
	d.state = armed
	switch {
	case d.ordered: // its scheduler calls idle
	case d.settled:
		d.settleLocked()
	case d.group.Idle(): // otherwise the last task to park calls it
		goroutine(d.idle)
	}
}

// rouseLocked makes the scheduler of an armed, ordered driver call idle: it may be asleep, with nothing runnable.
func (d *driver) rouseLocked() {
	if d.ordered && d.state == armed {
		_ = d.on.(suspend.Executor).Execute(nothing)
	}
}

func nothing() {}

// orderedIdle is called when the scheduler of an ordered driver has run something and finds nothing runnable.
func (d *driver) orderedIdle() {
	defer func() { // runs even if an Inline source ends this goroutine
		d.s.guard.Lock()
		d.rouseLocked() // writes may be left
		d.s.guard.Unlock()
	}()
	d.idle()
}

// leaveLocked takes w off all its requests. A request without waiters is not sent; pay cancels a batch without waiters.
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

// pay does the duties of w when its wait has ended, so that no lock is held: it hands out a round, and cancels batches.
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

// lookAtContext reports whether w's context is done, which need not have resumed w yet. A context that panics counts as
// not done, so that it harms no other task.
func (w *waiter) lookAtContext() (done bool) {
	defer func() { _ = recover() }()
	return suspend.Err(w.ctx) != nil
}

// forgetLocked gives a request up: the next Get of its key makes a new one.
func (q *request) forgetLocked() {
	q.state = gone
	q.t.forgetLocked(q)
}

// resumeLocked resumes all waiters of q that wait for nothing else; with foreignOnly, only the waiters of other
// drivers.
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

// end is the end of the driver's Run. What others wait for goes on; everything else is cancelled and waited for.
func (d *driver) end() {
	s := d.s
	s.guard.Lock()
	d.ended = true
	d.releaseLocked()
	var cancelled []*batch
	for n := d.batches.First(); n != nil; {
		b := n.Value
		n = n.Next() // cancelLocked takes b off the list, if it has not started
		if b.needed == 0 && !b.kept && !b.cancelled {
			b.cancelLocked()
			cancelled = append(cancelled, b)
		}
	}
	s.guard.Unlock()
	cancelAll(cancelled, nil)
	defer func() { // before that, a Close cancels its batches
		s.guard.Lock()
		s.drivers.Remove(&d.node)
		s.guard.Unlock()
	}()
	_, _ = suspend.Wait[struct{}](context.Background(), (*driverEnd)(d), false)
}

// releaseLocked gives away the pending requests of a driver whose Run or session is over, since it sends nothing more. Tasks of
// other Runs may wait for them, so the settled driver sends them, unless the session has ended.
func (d *driver) releaseLocked() {
	for _, list := range []*dlist.List[*request]{&d.reads, &d.writes} {
		for n := list.First(); n != nil; n = list.First() {
			q := n.Value
			if !d.s.ended {
				d.s.settled.addLocked(q)
				continue
			}
			list.Pop()
			q.state, q.err = gone, ErrEnded
			q.resumeLocked(false)
		}
	}
}

// A driverEnd is the Source on which the end of a Run waits until none of its batches is open.
type driverEnd driver

func (d *driverEnd) Guard() *suspend.Guard                 { return &d.s.guard }
func (d *driverEnd) Try() (v struct{}, ok bool, err error) { return v, d.batches.First() == nil, nil }
func (d *driverEnd) Enqueue(r suspend.Resumer[struct{}])   { d.ender = r }
func (d *driverEnd) Remove(suspend.Resumer[struct{}])      {}
