package actor

import (
	"context"
	"slices"
	"time"

	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/suspend"
)

// A mailbox: how a message goes from Send to the actor's reaction.
//
//  1. Where messages of its type may be requests, m is examined for its Request. Then Send passes a scheduling point, and takes
//     the guard.
//  2. The mailbox may refuse. closed, which a Stop, a Kill and the end set for good, means ErrEnded. A Cap that is reached means
//     ErrFull, but a SendOp queues in ops.senders instead, and a forced message (of Watch or SendAfter) passes uncounted.
//  3. A request gets its home here (adoptLocked), so that the end of this actor, or a failure that it catches, can fail the Ask.
//     The entry of the previous home is dropped after the guard is free, since it has a guard of its own.
//  4. If a RecvOp waits that accepts m and can be resumed, m goes to it and is in no mail (offerLocked). A RecvOp that
//     refuses was cancelled, and the next is tried.
//  5. Otherwise m is appended. While the owner is running, it goes to arrived, which the owner fetches later. While the owner is
//     receiving or reacting, it touches nothing until it is woken, so m goes straight to the owner's mail, and the owner
//     finds it there without the guard. An actor in an Await, an Ask or a lock is running: its mail waits, and nothing wakes it.
//  6. The append precedes the wake-up (wakeLocked). From receiving, the waiter is resumed. From reacting, the state becomes
//     running, so only one sender, timer, Stop or Kill sees the change, and only this caller must start a task. It does so after
//     the guard (launch); a SendOp does it under the guards of its Select.
//  7. The task runs step, the trampoline and react, which checks killed first. Then scan calls f with the messages behind
//     s.at, in their order, and under no lock. A message is busy while f has it, so a nested receive passes over it. After a
//     Skip the message keeps its slot, and this wait does not look at it again. Otherwise the message is removed, and with a Cap
//     its room goes to the first SendOp, of a Select or a SendWait, that can be resumed. The actor goes on with the result of f.
//  8. When f has skipped all, react takes the guard and looks for news (newsLocked), in this order: a Kill; new messages, all
//     fetched at once, unless the wait has noticed its timeout before; a Stop; an expired timeout. So a stopped actor first
//     handles its mail.
//  9. Without news the state becomes reacting, and the task returns. As soon as the guard is free another task may run the
//     actor, so this task must not touch it any more. A sender that comes now is at step 6: no wake-up falls between the look
//     and the wait, because both are under one guard. Receive and Handle do the same with suspend.Wait and the state receiving.
//
// What a failure means.
//
//   - Send returns an error: m was not accepted. The sender keeps it, and no dead letter is made of it.
//   - Send returns nil: m is received once or is a dead letter once. Nothing says that f succeeds, or that a reply comes.
//   - Resume reports false in step 6: the context of the wait has ended. m is in the mail already, and the next wait finds it.
//     A wait with the actor's own context has none: its end is a Kill (follow, receive.go), which wakes the waiter.
//   - The scheduler refuses the task in step 6: the actor ends with that error, on a goroutine, and m becomes a dead letter.
//     The sender has its nil, since m was accepted.
//   - f panics, or ends its goroutine: m counts as received. A panic goes to a Catch for panics around the reaction, and
//     the actor goes on in a new task. Otherwise the actor ends, and the panic goes on in the task.
//   - The actor ends: the requests at home here fail with ErrNoReply, and then each message that is left is given to Dead.
//     A panic of Dead does not keep the next message from it (each).
//
// What is not proved.
//
//   - The steps are tested, and explored by the model checker in small programs (suspendtest/internal/explore). There is no
//     proof for any number of senders, RecvOps and Kills.
//   - A scheduler that accepts a task and never runs it leaves the actor running for ever, and its mail grows.
//   - Without a Cap nothing bounds the mail. A Cap does not bound forced messages.
//   - match and the functions of Watch run on senders and ending actors. That they are quick and do not suspend is a demand
//     on the user, and is not checked.

// send leaves m in the mailbox.
func (in *Inbox[M]) send(m M) error {
	var q pending
	if in.asks { // repeats requestOf, which the compiler does not inline
		q = asRequest(m)
	}
	suspend.Point()
	in.guard.Relock() // inlined
	if in.closed || in.ops != nil || q != nil {
		return in.postLocked(m, q, false)
	}
	start := false
	if in.state == running {
		in.arrived.push(m)
	} else {
		in.mail.push(m)
		start = in.wakeLocked()
	}
	in.guard.Unlock()
	if start {
		in.self.launch()
	}
	return nil
}

// post is send with the request that m is or has, or nil. A forced message is accepted though Cap is reached, and not counted.
func (in *Inbox[M]) post(m M, q pending, forced bool) error {
	in.guard.Lock()
	return in.postLocked(m, q, forced)
}

// postLocked is post. It unlocks the guard.
func (in *Inbox[M]) postLocked(m M, q pending, forced bool) error {
	switch {
	case in.closed:
		in.guard.Unlock()
		return ErrEnded
	case !forced && in.ops.full():
		in.guard.Unlock()
		return ErrFull
	}
	moved, start := in.acceptLocked(m, q, forced)
	in.guard.Unlock()
	moved.drop()
	if start {
		in.self.launch()
	}
	return nil
}

// acceptLocked hands m to a waiting RecvOp that matches, or appends it. moved is the previous home of q, and start
// reports whether the caller must start a task.
//
// The owner of a mailbox in which it waits touches nothing until it is woken. So m goes to the owner's own mail, and the owner, which
// has looked at all that is there, finds it without the guard.
func (in *Inbox[M]) acceptLocked(m M, q pending, forced bool) (moved *entry, start bool) {
	var n note
	if q != nil {
		moved = in.adoptLocked(q)
		if w, ok := q.(wrapped); ok {
			n.q = w.pending
		}
	}
	if in.ops != nil {
		if in.offerLocked(m) {
			return moved, false
		}
		if n.uncounted = forced && in.ops.cap > 0; !n.uncounted {
			in.ops.used++
		}
	}
	if in.state == running {
		in.arrived.push(m)
		in.arrived.annotate(n)
		return moved, false
	}
	in.mail.push(m)
	in.mail.annotate(n)
	return moved, in.wakeLocked()
}

// stop is Stop.
func (in *Inbox[M]) stop() {
	in.guard.Lock()
	start := false
	if !in.closed {
		in.closed = true
		in.failLocked(ErrStopped)
		if in.ties != nil {
			in.ties.stopped.ResumeAll(struct{}{}, nil) // a waiter that refuses was cancelled, and will look
		}
		start = in.wakeLocked()
	}
	in.guard.Unlock()
	if start {
		in.self.launch()
	}
}

// kill is Kill.
func (in *Inbox[M]) kill(cause error) {
	if cause == nil {
		cause = context.Canceled
	}
	in.guard.Lock()
	if in.state == ended || in.killed.Load() {
		in.guard.Unlock()
		return
	}
	in.killed.Store(true)
	in.closed, in.err = true, cause
	in.failLocked(cancelctx.Reason(context.Canceled, cause))
	start := in.wakeLocked()
	in.guard.Unlock()
	in.ctx.Cancel(cause)
	if start {
		in.self.launch()
	}
}

// launch starts a task. It must be called once for each move from reacting to running, or two tasks would run the actor.
func (s *Self[M]) launch() {
	if err := s.on.Go(s.enter); err != nil {
		goroutine(func() { s.end(err) }) // the caller is a sender or a timer, which must not run it
	}
}

// received takes the message at p out of the mailbox, for good.
func (in *Inbox[M]) received(p place[M]) {
	counted := in.mail.counts && !p.seg.notes[p.at].uncounted
	in.mail.remove(p)
	if counted {
		in.leaveRoom()
	}
}

// bury makes a dead letter of the first message of which no function is being called, and reports whether there was one.
func (in *Inbox[M]) bury() (more bool) {
	p, ok := in.mail.after(place[M]{})
	if !ok {
		return false
	}
	m := p.message()
	in.mail.remove(p)
	if in.hooks != nil && in.hooks.dead != nil {
		in.hooks.dead(m)
	}
	return true
}

// An arrival is an inbox as the Source of a wait for something new. Its methods run in the owner's task. It is a pointer and not a struct,
// since each word of it takes three words of the stack of each actor that waits.
type arrival[M any] Inbox[M]

func (a *arrival[M]) Guard() *suspend.Guard { return &a.guard }

// Try fetches new messages. An error ends the wait.
func (a *arrival[M]) Try() (none struct{}, ok bool, err error) {
	ok, err = (*Inbox[M])(a).newsLocked(a.within)
	return none, ok, err
}

func (a *arrival[M]) Enqueue(r suspend.Resumer[struct{}]) {
	(*Inbox[M])(a).restLocked()
	a.state, a.waiter = receiving, r
}

func (a *arrival[M]) Remove(suspend.Resumer[struct{}]) {
	if a.state == receiving {
		a.state = running
	}
	a.waiter = suspend.Resumer[struct{}]{}
}

// newsLocked reports whether there is something new for the owner, and fetches it. A message that is there when the timeout is noticed
// comes before it, but a later message does not.
func (in *Inbox[M]) newsLocked(t *timer) (ok bool, err error) {
	switch {
	case in.killed.Load():
		return true, cancelctx.Reason(context.Canceled, in.err)
	case in.arrived.count > 0 && t != nil && t.looked:
		return true, ErrTimeout
	case in.arrived.count > 0:
		in.mail.fetch(&in.arrived)
		if t != nil {
			t.looked = t.expired
		}
		return true, nil
	case in.state == ended:
		return true, ErrEnded
	case in.closed:
		return true, ErrStopped
	case t != nil && t.expired:
		return true, ErrTimeout
	}
	return false, nil
}

// restLocked prepares for a wait: a mailbox keeps no large segment then that is empty.
func (in *Inbox[M]) restLocked() {
	in.arrived.rest()
	if in.mail.count == 0 {
		in.mail.rest()
	}
}

// startTimer begins the timeout of a wait.
func (in *Inbox[M]) startTimer(d time.Duration) *timer {
	t := &timer{expired: d <= 0}
	if !t.expired {
		t.cancel = in.afterFunc(d, func() { in.expire(t) })
	}
	return t
}

// expire is called by the clock. It wakes the actor, and only the wait of t finds that it has expired: at once, or when its nested
// waits are over.
func (in *Inbox[M]) expire(t *timer) {
	in.guard.Lock()
	t.expired = true
	start := in.wakeLocked()
	in.guard.Unlock()
	if start {
		in.self.launch()
	}
}

// afterFunc calls f after d, by the timers of the actor's scheduler, and for an inbox by the timers of the caller's scheduler.
func (in *Inbox[M]) afterFunc(d time.Duration, f func()) (stop func() bool) {
	if in.self != nil {
		return suspend.AfterFunc(in.self.on, d, f)
	}
	return suspend.AfterFunc(suspend.Here(), d, f)
}

func (s *Self[M]) stuckAfter(f func()) (stop func() bool) { return s.afterFunc(s.who.after, f) }

func (s *Self[M]) onStuck(chain []string) { s.who.onStuck(chain) }

// offerLocked hands m to the first RecvOp that matches it and can be resumed. It reports whether there is one. A waiter
// that refuses is cancelled, and removes itself.
func (in *Inbox[M]) offerLocked(m M) bool {
	x := in.ops
	for i := 0; i < len(x.offers); i++ {
		o := x.offers[i]
		yes, err := in.matchesLocked(o.match, m)
		var none M
		switch {
		case err != nil && o.r.Resume(none, err):
			x.offers = slices.Delete(x.offers, i, i+1)
			i--
		case err == nil && yes && o.r.Resume(m, nil):
			x.offers = slices.Delete(x.offers, i, i+1)
			return true
		}
	}
	return false
}

// failLocked ends all RecvOps and SendOps that wait.
func (in *Inbox[M]) failLocked(receives error) {
	if in.ops == nil {
		return
	}
	var none M
	for _, o := range in.ops.offers {
		o.r.Resume(none, receives)
	}
	clear(in.ops.offers)
	in.ops.offers = in.ops.offers[:0]
	in.ops.senders.ResumeAll(struct{}{}, ErrEnded)
}

// matchesLocked calls match. A Goexit of it unlocks the guard, as nobody else would.
func (in *Inbox[M]) matchesLocked(match func(M) bool, m M) (yes bool, err error) {
	if match == nil {
		return true, nil
	}
	returned := false
	defer func() {
		if returned {
			return
		}
		v := recover()
		if v == nil { // runtime.Goexit
			in.guard.Unlock()
		}
		err = &matchPanic{v}
	}()
	yes = match(m)
	returned = true
	return yes, nil
}

// A matchPanic carries a panic of a match to the task that performs the RecvOp.
type matchPanic struct{ value any }

func (*matchPanic) Error() string { return "actor: a match has panicked" }

func (in *Inbox[M]) leaveRoom() {
	in.guard.Lock()
	in.leaveRoomLocked()
	in.guard.Unlock()
}

// leaveRoomLocked counts a message out of the mailbox. The SendOp that has waited longest takes its room.
//
// Invariant: a SendOp that waits and can be resumed waits since there is no room.
func (in *Inbox[M]) leaveRoomLocked() {
	if in.ops == nil || in.ops.cap == 0 {
		return
	}
	if in.ops.used--; in.ops.full() {
		return
	}
	if x, ok := in.ops.senders.Resume(struct{}{}, nil); ok {
		in.acceptLocked(x.m, x.q, false) // the owner is running; SendOp itself drops where q was
	}
}

// requestOf returns the request that m is, nil if it is none.
func (in *Inbox[M]) requestOf(m M) pending {
	if !in.asks {
		return nil
	}
	return asRequest(m)
}

func (in *Inbox[M]) lifeOf() *life { return &in.life }
