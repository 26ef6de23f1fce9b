package actor

import (
	"context"
	"sync/atomic"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/suspend"
)

// The state of a mailbox. -S> is a sender, -T> a timer, -K> a Stop or a Kill, -A> the actor:
//
//	running    -S> running     the message is appended
//	receiving  -S,-T,-K> running   and the actor's waiter is resumed
//	reacting   -S,-T,-K> running   and the caller owes the start of a task, after the guard
//	running    -A> receiving, reacting   only with nothing new, not stopped, not killed, not expired
//	running    -A> ended       for good; the rest of the mail, requests and watchers are taken out, and told outside
//
// A message is always appended before the waiter is resumed, so a wake-up that meets a cancellation loses nothing.
//
// Invariant: reacting implies that no task of the actor exists; receiving or reacting implies that the actor has looked at
// all that is there. A timer expires for one wait only; the wake-up of another one is harmless.
// Debt: the one that moves reacting to running owes a task.
type state uint8

const (
	running state = iota
	receiving
	reacting
	ended
)

// A life is the part of an actor that does not depend on the type of its messages. All but killed is guarded by guard, where
// nothing else is said.
//
// Senders write what stands first, and the owner reads killed for each message, so these two are far apart: on one cache line, each would
// take it from the other.
type life struct {
	guard  suspend.Guard
	state  state
	closed bool   // no more messages are accepted; for good
	over   bool   // the end is told; for good
	asks   bool   // a message may be a request; never changes
	calls  *entry // requests whose home this is: the youngest; they are a ring
	waiter suspend.Resumer[struct{}]
	err    error            // the cause of killed, then the error of ended
	ties   *ties            // nil until it is needed
	child  *child           // nil: of no actor. Never changes
	parent *context.Context // of ctx, see lineage; nil: it is context.Background. Never changes
	who    *who             // nil: it has no name, and is not looked for in cycles. Never changes

	ctx     cancelctx.Context // of the actor; ended by Kill and by the end
	killed  atomicx.Bool      // written under guard, once; implies closed
	fertile atomic.Bool       // it has, or had, a child; written under guard, so that most ends need not look there
	task    atomic.Int64      // the goroutine of the task, while there is one; 0 for an inbox, and where no message may be a request
}

// A who is what reports call an actor.
type who struct {
	name   string
	asking *asking    // guarded by cycles; the Ask in which the actor waits, if somebody wants to know
	stuck  stuckActor // nil: nobody wants to know. Never changes
}

func (l *life) name() string {
	if l.who == nil {
		return ""
	}
	return l.who.name
}

// wakeLocked tells the actor that something is new. It reports whether the caller owes a task.
func (l *life) wakeLocked() (start bool) {
	switch l.state {
	case receiving:
		l.state = running
		l.waiter.Resume(struct{}{}, nil) // false: cancelled, and it will look again in its next wait
	case reacting:
		l.state = running
		return true
	}
	return false
}

// cancellation is the error of a wait that a Kill has ended.
func (l *life) cancellation() error {
	if err := suspend.Err(&l.ctx); err != nil {
		return err
	}
	l.guard.Lock() // the Kill is about to cancel the context
	defer l.guard.Unlock()
	return cancelctx.Reason(context.Canceled, l.err)
}

// send leaves m in the mailbox.
func (in *Inbox[M]) send(m M) error {
	var q pending
	if in.asks { // as requestOf, which the compiler does not inline
		q = asRequest(m)
	}
	in.guard.Lock()
	if in.closed || in.room != nil || q != nil {
		return in.postLocked(m, q, false)
	}
	start := false
	if in.state == running {
		in.in.push(m)
	} else {
		in.kept.push(m)
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
	case !forced && in.room.full():
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

// acceptLocked hands m to a waiting RecvOp that matches, or appends it. moved is where q was until now, and start says that the
// caller owes a task.
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
	if in.room != nil {
		if in.offerLocked(m) {
			return moved, false
		}
		if n.uncounted = forced && in.room.cap > 0; !n.uncounted {
			in.room.used++
		}
	}
	if in.state == running {
		in.in.push(m)
		in.in.annotate(n)
		return moved, false
	}
	in.kept.push(m)
	in.kept.annotate(n)
	return moved, in.wakeLocked()
}

// received takes the message at p out of the mailbox, for good.
func (in *Inbox[M]) received(p place[M]) {
	if in.kept.counts {
		in.receivedOfCap(p)
		return
	}
	in.kept.remove(p)
}

func (in *Inbox[M]) receivedOfCap(p place[M]) {
	counted := !p.seg.notes[p.at].uncounted
	in.kept.remove(p)
	if counted {
		in.leaveRoom()
	}
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
// comes before it, and those that come later do not.
func (in *Inbox[M]) newsLocked(t *timer) (ok bool, err error) {
	switch {
	case in.killed.Load():
		return true, cancelctx.Reason(context.Canceled, in.err)
	case in.in.count > 0 && t != nil && t.looked:
		return true, ErrTimeout
	case in.in.count > 0:
		in.kept.fetch(&in.in)
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
	in.in.rest()
	if in.kept.count == 0 {
		in.kept.rest()
	}
}
