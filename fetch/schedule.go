package fetch

import (
	"slices"

	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/suspend"
)

// This comment describes the course of a round.
//
// A round is a set of requests that are sent together and whose answers are handed out together. The code of this file begins
// with step 5, which decides what is sent. Functions without a file name are in this file, in waiter.go or in handout.go. In short:
//
//	Get          returns an answer that the session has. Otherwise it joins or makes a request, and suspends     steps 1 to 3
//	idle         runs when no task of the driver can: it sends the pending reads, or the writes if there are     steps 4 to 6
//	             no reads, in a batch for each source
//	callSource   calls the source                                                                                 step 7
//	finish       records the answers; the last batch of the round hands them out (backLocked)                     step 8
//	overLocked   arms the driver again if requests are pending                                                    step 9
//
//  1. A Get checks its context (frame.check, records.go). If the session remembers the answer, Get returns it without waiting
//     (answered, get.go). Get fails with ErrNoSession if the context has no session, and with ErrInSource if the context
//     belongs to a source, whose round would wait for itself. It fails with errEnded if the session has ended (call.Try).
//  2. Otherwise the task suspends (call.wait). If the source is Immediate and Inline, the task first calls it itself, as in step 7. joinLocked
//     adds the task's waiter to a request. Two Gets of a key share a request, so that no batch has a key twice. Effects share
//     no requests.
//  3. addLocked adds a new request to the pending reads of the task's driver, or to its pending writes if the request is an
//     Effect. If the source is Immediate, the request gets its own batch and round and skips steps 4 to 6. armLocked
//     arms a quiet driver. A driver that is sending or busy is armed when it leaves that state. If a goroutine outside a Run
//     joins a pending request of a Run, the request moves to the settled driver. The reason is that the Run's scheduler might
//     not run until that goroutine continues.
//  4. The driver becomes quiescent when its scheduler has no runnable task (orderedIdle), when all tasks of its group wait
//     (idle.Group), or when the time to settle is over (settle.go). At each of these events, the method idle is called.
//  5. The method idle returns if the driver is not armed, if its Run or session has ended, or if a task of its group is runnable
//     again. In the last case, the last task to park calls it again. Otherwise idle checks the contexts that may resume their
//     waiters late. It does so without the guard, because contexts are foreign code. A waiter whose context is done leaves; a
//     context that panics counts as not done.
//  6. sendLocked makes a batch for each source, or several batches if there are more than MaxBatch keys. Writes are sent only
//     if no read is pending, so that the reads see the state before the writes. Without Eager, the driver is busy now. With
//     Eager, the answers of each batch are handed out separately, and the driver may send again. A batch beyond MaxOpen waits
//     in the queue of its table.
//  7. batch.callSource calls the source, unless the batch was cancelled first. Then batch.answer sets the answer to each key (batch.go). A session
//     remembers errors and panics like values. It does not remember Transient errors, context.Canceled, errors of a call whose context
//     has ended, or any answer of a Fresh source.
//  8. batch.finish changes the state of the requests to back. It resumes the waiters of other drivers at once, because these must
//     not wait for a round of this driver. When the last batch of the round is over, backLocked hands out the answers in the
//     order of the Gets. A waiter that lacks another answer stays suspended. In an ordered Run, the first resumed task hands out
//     the remaining answers (pay), so that all tasks are runnable before any task continues.
//  9. overLocked ends the round, and arms the driver if requests are pending. overLocked must be called last; otherwise the
//     tasks that resume first and park again would make a separate, small round.
//
// How waits, Runs and sessions end early:
//   - A context ends, or a scheduler kills the task: package suspend resumes the task (suspend/context.go). If the answer
//     comes at the same moment, whichever changes the task's state word first ends the wait. If the context wins, the task
//     removes its waiter from each of its requests (leaveLocked), and Get fails with the cancellation error. Other waiters
//     still get their answers. A pending request without waiters is forgotten and never sent. A sent request stays in its
//     batch, and later Gets can join it. If no request of a batch has waiters, the context of the call ends and the answers
//     are dropped, except for a started Effect or direct call.
//   - A Run ends: the settled driver takes over pending requests that other tasks wait for. Batches without waiters are
//     cancelled, except for started Effects. The Run returns when all of its batches are over (driver.close,
//     end.go).
//   - A session ends: pending requests fail with errEnded, and open batches are cancelled with errEnded as the cause. Close
//     waits for these batches.
//
// Limits of the algorithm:
//   - A source that ignores its context delays the round, the end of the Run, and Close. A task that waits natively counts as
//     running and delays the round of its Run.
//   - A task that a timer or another scheduler resumes just after step 5 joins the next round. The time to settle is a guess.
//   - The batches of a round run in any order and may read different states of the data. Effects of two sources are not ordered.

// idle sends the pending requests. It is called when none of the driver's tasks seems runnable, and returns at once if a task
// is runnable again.
func (d *driver) idle() {
	s := d.s
	s.guard.Lock()
	// Step 5.
	if !d.mustSendLocked() {
		s.guard.Unlock()
		return
	}
	d.state = sending
	list := d.toSendLocked()
	if unsure := unsureLocked(list); unsure != nil { // contexts of package context resume their waiters late
		s.guard.Unlock()
		late := slices.DeleteFunc(unsure, func(w *waiter) bool { return !w.lookAtContext() })
		s.guard.Lock()
		for _, w := range late {
			w.leaveLocked()
		}
	}
	// Step 6. Here we have a choice: to send now, or to wait for more requests. No task of the Run can run, so no wait would bring
	// more of them; a dataloader cannot know this, and waits.
	start := d.sendLocked(list)
	s.guard.Unlock()
	start.beginAll()
}

// mustSendLocked reports whether d is armed, and no task of its group is runnable.
func (d *driver) mustSendLocked() bool {
	return d.state == armed && !d.ended && !d.s.ended && (d.group == nil || d.group.Idle())
}

// toSendLocked returns the requests to send next: the reads, or the writes if there are no reads.
func (d *driver) toSendLocked() *dlist.List[*request] {
	list := &d.reads
	if list.First() == nil {
		list = &d.writes
	}
	return list
}

// unsureLocked returns the waiters of a list of requests whose contexts may be done, although they have not resumed the waiter yet.
func unsureLocked(list *dlist.List[*request]) (unsure []*waiter) {
	for q := list.First(); q != nil; q = q.Next() {
		for w := q.Value.waiters.First(); w != nil; w = w.Next() {
			if !w.Value.prompt {
				unsure = append(unsure, w.Value)
			}
		}
	}
	return unsure
}

// sendLocked makes batches from a list of requests, and returns a linked list of the batches that can start now.
func (d *driver) sendLocked(list *dlist.List[*request]) (start *batch) {
	d.state = quiet
	if list.First() == nil {
		d.armLocked()
		return nil
	}
	d.waiters = 0
	d.s.stats.Rounds++
	r := &round{d: d, number: d.s.stats.Rounds}
	// Here we have a choice. Without Eager, tasks that the answers make runnable find each other in the next round, so the batches
	// are large. With Eager, a chain of quick sources does not wait for a slow one, but the batches are smaller.
	if r.requests.Append(list); !d.eager {
		d.state, r.holds = busy, true
	}
	start = d.openAllLocked(r, r.batchesLocked())
	d.armLocked()
	return start
}

// batchesLocked makes the batches of r, one for each source and each MaxBatch of its keys, and returns them as a linked list.
func (r *round) batchesLocked() (batches *batch) {
	last := &batches
	for n := r.requests.First(); n != nil; n = n.Next() {
		t := n.Value.t
		if t.filling == nil || len(t.filling.requests) == t.opts.MaxBatch {
			t.filling = newBatch(t, r)
			*last, last = t.filling, &t.filling.then
		}
		t.filling.addLocked(n.Value)
	}
	return batches
}

// openAllLocked opens the batches of r, and returns a linked list of those that can start now. With Eager, each batch gets a round of its own.
func (d *driver) openAllLocked(r *round, batches *batch) (start *batch) {
	last := &start
	for b := batches; b != nil; b = b.then {
		b.t.filling = nil
		if d.eager {
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
	return start
}

// backLocked records that a batch of r is over. After the last batch it hands out the answers and ends the round.
func (r *round) backLocked() {
	// Step 8, in the last batch of the round.
	if r.open--; r.open > 0 {
		return
	}
	if r.d.ordered && r.handLocked(true) {
		return // the resumed task hands out the remaining answers
	}
	r.handLocked(false)
	r.overLocked()
	r.d.rouseLocked()
}

// overLocked ends the round. It must be called after the last answer is handed out.
func (r *round) overLocked() {
	// Step 9.
	if r.holds {
		r.d.state = quiet
	}
	r.d.armLocked()
}

// addLocked makes q a pending request of d and removes q from any other driver. If the source is Immediate, the
// request is sent at once.
func (d *driver) addLocked(q *request) {
	if q.d != nil {
		q.d.pendingLocked(q).Remove(&q.node)
	}
	// Step 3.
	if q.d = d; q.t.opts.Immediate {
		if b := aloneLocked(q); b.started {
			goroutine(b.runAll)
		}
		return
	}
	q.node.Value = q
	d.pendingLocked(q).Push(&q.node)
	d.armLocked()
}

func (d *driver) pendingLocked(q *request) *dlist.List[*request] {
	if q.t.write {
		return &d.writes
	}
	return &d.reads
}

// aloneLocked makes a batch of one request. The caller must run the batch if it is marked started.
func aloneLocked(q *request) *batch {
	r := &round{d: q.d}
	b := newBatch(q.t, r)
	b.addLocked(q)
	q.node.Value = q
	r.requests.Push(&q.node)
	b.openLocked()
	return b
}

// armLocked arranges that d.idle is called when no task is runnable. It has no effect if no request is pending.
func (d *driver) armLocked() {
	if d.reads.First() == nil && d.writes.First() == nil || d.state != quiet || d.s.ended {
		return
	}
	d.state = armed
	// Step 4 begins here: something will call d.idle.
	switch {
	case d.ordered: // the scheduler calls d.idle
	case d.settled:
		d.settleLocked()
	case d.group.Idle(): // otherwise the last task to park calls d.idle
		goroutine(d.idle)
	}
}

// rouseLocked makes the scheduler of an armed, ordered driver call d.idle, because the scheduler may be asleep.
func (d *driver) rouseLocked() {
	if d.ordered && d.state == armed {
		_ = d.on.(suspend.Executor).Execute(nothing)
	}
}

func nothing() {}

// orderedIdle is called by the scheduler of an ordered driver when no task is runnable.
func (d *driver) orderedIdle() {
	defer func() { // runs even if an Inline source ends this goroutine
		d.s.guard.Lock()
		d.rouseLocked() // writes may be pending
		d.s.guard.Unlock()
	}()
	d.idle()
}

// forgetLocked drops a request, so that the next Get of its key makes a new request.
func (q *request) forgetLocked() {
	q.state = gone
	q.t.forgetLocked(q)
}
