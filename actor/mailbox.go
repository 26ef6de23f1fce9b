package actor

import (
	"context"
	"time"

	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/suspend"
)

// How a message m gets from Send to the actor's reaction, a function f. Without the exits, it is this:
//
//	Send                                                     steps 1 to 6
//		lock the guard
//		append m
//		if the state is receiving: it becomes running, and the waiter is resumed
//		if the state is reacting: it becomes running, and m needs a task
//		unlock the guard, and start the task, if m needs one
//	the task                                                 steps 7 to 9
//		call f with each message
//		lock the guard
//		if there are new messages: fetch them, unlock the guard, and begin again
//		the state becomes reacting
//		unlock the guard, and end
//
// These are the steps, with their exits:
//
//  1. If messages of type M may be requests, Send looks for a Request in m. Then Send passes a scheduling point, and locks the guard.
//  2. The mailbox may refuse m. After a Stop, a Kill or the actor's end, Send returns ErrEnded. If the Cap is reached, Send returns
//     ErrFull, but a SendOp waits in ops.senders, and a forced message (from Watch or SendAfter) is accepted and not counted.
//  3. The actor becomes the home of a request (adoptLocked), so that the actor's end, or a caught failure, can fail the Ask. The entry
//     of the previous home is dropped after the guard is unlocked, because that home's guard protects it.
//  4. If a RecvOp without a match waits and can be resumed, m is delivered to it and is not appended (offerLocked). A RecvOp whose Resume
//     reports false was cancelled, and the next RecvOp is tried. A RecvOp with a match is resumed to look again, after m is appended
//     (lookAgainLocked): only the owner calls match, in selection.Prepare, since match is foreign code and senders hold guards here.
//  5. Otherwise m is appended. In state running, m is appended to Inbox.arrived, from which the owner fetches it later. In states
//     receiving and reacting, the owner uses the mailbox only after it is woken. So m is appended to Inbox.mail, where the owner finds
//     it without the guard. An actor that waits for an Await, an Ask or a lock is in state running, and no message wakes it.
//  6. The actor is woken after the append (wakeLocked). In state receiving, the state becomes running and the waiter is resumed. In
//     state reacting, the state becomes running, so only one sender, timer, Stop or Kill makes this change and must start a task. It
//     starts the task after it has unlocked the guard (launch), but a SendOp does so under the guards of its Select.
//  7. The task runs enter, trampoline and react, and first checks for a Kill. Then scan calls f with each message behind the place in.at,
//     in order and without a lock. A message is busy while f handles it, so that a nested receive passes over it. A message that f
//     skips keeps its slot, and this wait does not call f with it again. Any other message is removed. With a Cap, its place is given
//     to the first SendOp, from a Select or a SendWait, that can be resumed. The actor continues with the result of f.
//  8. When f has skipped every message, the task locks the guard and checks (newsLocked), in this order: a Kill; new messages, which
//     are fetched together, unless the wait has already noticed its timeout; a Stop; an expired timeout. A stopped actor therefore
//     handles its mail first.
//  9. If there is nothing new, the state becomes reacting, and the task returns. After the guard is unlocked, another task may run the
//     actor, so the returning task must not touch it. The next sender finds the state reacting in step 6. No wake-up is lost, because
//     the check and the change of state are under one guard. Receive and Handle do the same with suspend.Wait and the state receiving.
//
// What failures mean.
//
//   - If Send returns an error, m was not accepted. The sender keeps m, and m does not become a dead letter.
//   - If Send returns nil, m will be received once or become a dead letter once. This does not mean that f succeeds, or that there will
//     be a reply.
//   - If Resume reports false in step 6, the context of the wait has ended. m is already in the mail, and the next wait finds it.
//   - If the scheduler refuses the task in step 6, the actor ends with that error, on a separate goroutine, and m becomes a dead
//     letter. Send still returns nil, because m was accepted.
//   - If f panics or calls runtime.Goexit, m counts as received. If a Catch around the reaction handles the panic, the actor continues
//     in a new task. Otherwise the actor ends, and the panic continues in the task.
//   - When the actor ends, all requests that wait for its reply fail with ErrNoReply. Then Dead is called with each remaining message,
//     even if one of the calls panics.
//
// How a wait ends early. suspend/context.go describes which goroutine notices the end of a context.
//
//   - The context of a Receive or Handle ends. Until the actor's task runs again, the state is receiving, and senders append to
//     Inbox.mail. The task uses that mail only after it has set the state to running under the guard (arrival.Remove). Receive returns
//     the cancellation error and removes no message. The context of a SendOp or RecvOp ends: the waiting task removes its node from
//     ops, and a sender keeps m. If a free place or a message is offered at the same moment, its Resume reports false, and the next
//     node in ops gets the offer.
//   - The actor is killed, or its own context ends, which calls kill (follow, receive.go). A wait with the actor's own context is
//     therefore not registered with this context. The waiter is woken; Receive and Handle return an error that wraps the cause, and a
//     reaction ends the actor. All RecvOps fail with this error, and all SendOps with ErrEnded. A Stop also fails them, and wakes the
//     waiter, but Receive and Handle return ErrStopped only when the mail is empty.
//   - The scheduler kills the actor's task. Receive calls runtime.Goexit instead of returning, and the actor ends with ErrAbandoned.
//
// What is not proved.
//
//   - The steps are tested, and explored by the model checker in small programs (suspendtest/internal/explore). There is no proof for
//     arbitrary numbers of senders, RecvOps and Kills.
//   - If a scheduler accepts a task and never runs it, the actor stays in state running, and its mail grows.
//   - Without a Cap nothing bounds the mail. A Cap does not bound forced messages.
//   - The functions passed to Watch run on ending actors. They must be quick and must not suspend, but this is not checked.

// send puts m into the mailbox.
func (in *Inbox[M]) send(m M) error {
	// Step 1.
	var q pending
	l := &in.life
	if l.asks { // a copy of requestOf, which the compiler does not inline
		q = asRequest(m)
	}
	suspend.Point()
	l.guard.Relock() // inlined
	// The cases of steps 2 to 4 are in postLocked and acceptLocked. Other messages continue with step 5.
	if l.closed || in.ops != nil || q != nil {
		return in.postLocked(m, q, false)
	}
	start := false
	if l.state == running {
		in.arrived.push(m)
	} else {
		in.mail.push(m)
		start = l.wakeLocked()
	}
	l.guard.Unlock()
	if start {
		l.launch()
	}
	return nil
}

// post is like send, for a caller that has already found the request q in m. q may be nil. A forced message is accepted even if Cap is
// reached, and is not counted.
func (in *Inbox[M]) post(m M, q pending, forced bool) error {
	in.life.guard.Lock()
	return in.postLocked(m, q, forced)
}

// postLocked is post for a caller that holds the guard. It unlocks the guard before it returns.
func (in *Inbox[M]) postLocked(m M, q pending, forced bool) error {
	l := &in.life
	switch {
	// Step 2.
	case l.closed:
		l.guard.Unlock()
		return ErrEnded
	case !forced && in.ops.full():
		l.guard.Unlock()
		return ErrFull
	}
	moved, start := in.acceptLocked(m, q, forced)
	l.guard.Unlock()
	moved.drop()
	if start {
		l.launch()
	}
	return nil
}

// acceptLocked delivers m to a waiting RecvOp that matches, or appends m. The result moved is the entry of q's previous home, and start
// reports whether the caller must start a task.
//
// An owner that waits does not touch the mailbox until it is woken, so m is then appended to the owner's mail. The owner has examined
// all earlier messages, and finds m without the guard.
func (in *Inbox[M]) acceptLocked(m M, q pending, forced bool) (moved *entry, start bool) {
	var n note
	if q != nil {
		// Step 3.
		moved = in.life.adoptLocked(q)
		if w, ok := q.(wrapped); ok {
			n.q = w.pending
		}
	}
	if in.ops != nil {
		// Step 4.
		if in.offerLocked(m) {
			return moved, false
		}
		in.lookAgainLocked() // before m is appended, but the guard is held until then
		if n.uncounted = forced && in.ops.cap > 0; !n.uncounted {
			in.ops.used++
		}
	}
	// Step 5. Here we have a choice: a message for an actor that waits could go to arrived as well. It goes to the owner's mail, so that the
	// owner, once woken, finds it without the guard.
	if in.life.state == running {
		in.arrived.push(m)
		in.arrived.annotate(n)
		return moved, false
	}
	in.mail.push(m)
	in.mail.annotate(n)
	// Step 6.
	return moved, in.life.wakeLocked()
}

// stop implements Stop.
func (l *life) stop() {
	l.guard.Lock()
	start := false
	if !l.closed {
		l.closed = true
		l.box.failLocked(ErrStopped)
		if l.ties != nil {
			l.ties.stopped.ResumeAll(struct{}{}, nil) // a cancelled waiter is skipped, and needs no wake-up
		}
		start = l.wakeLocked()
	}
	l.guard.Unlock()
	if start {
		l.launch()
	}
}

// kill implements Kill.
func (l *life) kill(cause error) {
	if cause == nil {
		cause = context.Canceled
	}
	l.guard.Lock()
	if l.state == ended || l.killed.Load() {
		l.guard.Unlock()
		return
	}
	l.killed.Store(true)
	l.closed, l.err = true, cause
	l.box.failLocked(cancelctx.Reason(context.Canceled, cause))
	start := l.wakeLocked()
	l.guard.Unlock()
	l.ctx.Cancel(cause)
	if start {
		l.launch()
	}
}

// launch starts a task that runs the actor. It must be called exactly once for each change of the state from reacting to running.
// Otherwise no task, or two tasks, would run the actor.
func (l *life) launch() {
	if err := l.on.Go(l.enter); err != nil {
		goroutine(func() { l.finish(err) }) // the caller may be a sender or a timer, which must not run the actor's end
	}
}

// received removes the message at p from the mailbox. With a Cap, it makes room for a waiting SendOp.
func (in *Inbox[M]) received(p place[M]) {
	counted := in.mail.counts && !p.seg.notes[p.at].uncounted
	in.mail.remove(p)
	if counted {
		in.life.guard.Lock()
		in.freeRoomLocked()
		in.life.guard.Unlock()
	}
}

// bury removes the first message that is not being handled, and makes it a dead letter. It reports whether there was such a message.
func (in *Inbox[M]) bury() (more bool) {
	p, ok := in.mail.after(place[M]{})
	if !ok {
		return false
	}
	m := p.message()
	in.mail.remove(p)
	if in.dead != nil {
		in.dead(m)
	}
	return true
}

// An arrival is a life as the Source on which the owner of its inbox waits. Its methods run in the owner's task. It has no fields
// besides those of the life, because each word of a Source takes three words on the stack of each actor that waits.
type arrival life

func (a *arrival) Guard() *suspend.Guard { return &a.guard }

// Try fetches new messages. An error ends the wait.
func (a *arrival) Try() (none struct{}, ok bool, err error) {
	ok, err = a.box.newsLocked(a.within)
	return none, ok, err
}

func (a *arrival) Enqueue(r suspend.Resumer[struct{}]) {
	a.box.restLocked()
	a.state, a.waiter = receiving, r
}

func (a *arrival) Remove(suspend.Resumer[struct{}]) {
	if a.state == receiving {
		a.state = running
	}
	a.waiter = suspend.Resumer[struct{}]{}
}

// newsLocked reports whether there is something new for the owner: messages, which it fetches, or an error. Messages that are in the
// mailbox when the owner notices the timeout are still handled, but later messages are not.
func (in *Inbox[M]) newsLocked(t *timer) (ok bool, err error) {
	l := &in.life
	switch {
	case l.killed.Load():
		return true, cancelctx.Reason(context.Canceled, l.err)
	case in.arrived.count > 0 && t != nil && t.looked:
		return true, ErrTimeout
	case in.arrived.count > 0:
		in.fetchLocked()
		if t != nil {
			t.looked = t.expired
		}
		return true, nil
	case l.state == ended:
		return true, ErrEnded
	case l.closed:
		return true, ErrStopped
	case t != nil && t.expired:
		return true, ErrTimeout
	}
	return false, nil
}

// fetchLocked moves new messages to the owner's mail.
func (in *Inbox[M]) fetchLocked() { in.mail.fetch(&in.arrived) }

// restLocked prepares for a wait. It releases large segments that are empty.
func (in *Inbox[M]) restLocked() {
	in.arrived.rest()
	if in.mail.count == 0 {
		in.mail.rest()
	}
}

// startTimer starts the timeout of a wait.
func (l *life) startTimer(d time.Duration) *timer {
	t := &timer{expired: d <= 0}
	if !t.expired {
		t.cancel = l.afterFunc(d, func() { l.expire(t) })
	}
	return t
}

// expire is called when t fires. It wakes the actor, but only the wait to which t belongs returns: at once, or after the waits nested
// in it.
func (l *life) expire(t *timer) {
	l.guard.Lock()
	t.expired = true
	start := l.wakeLocked()
	l.guard.Unlock()
	if start {
		l.launch()
	}
}

// afterFunc calls f after d. It uses the timers of the actor's scheduler or, for an inbox from Open, of the caller's scheduler.
func (l *life) afterFunc(d time.Duration, f func()) (stop func() bool) {
	on := l.on
	if on == nil {
		on = suspend.Here()
	}
	return suspend.AfterFunc(on, d, f)
}

// requestOf returns m as a request, or nil if m is not a request.
func (in *Inbox[M]) requestOf(m M) pending {
	if !in.life.asks {
		return nil
	}
	return asRequest(m)
}

func (in *Inbox[M]) lifeOf() *life { return &in.life }
