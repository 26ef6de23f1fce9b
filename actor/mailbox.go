package actor

import (
	"context"

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
type life struct {
	guard  suspend.Guard
	state  state
	closed bool         // no more messages are accepted; for good
	over   bool         // the end is told; for good
	killed atomicx.Bool // written under guard, once; implies closed
	err    error        // the cause of killed, then the error of ended
	waiter suspend.Resumer[struct{}]
	calls  *entry // requests whose home this is: the youngest; they are a ring
	ends   *ends  // nil until somebody wants to know of the end
	name   string
	asking *asking // guarded by cycles; the Ask in which the actor waits, if somebody wants to know

	ctx    context.Context // of the actor; ended by Kill and by the end. Never changes
	cancel func(cause error)
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
	if err := suspend.Err(l.ctx); err != nil {
		return err
	}
	l.guard.Lock() // the Kill is about to cancel the context
	defer l.guard.Unlock()
	return cancelctx.Reason(context.Canceled, l.err)
}

// post leaves m in the mailbox. q is the request that m is or has, or nil. A forced message is accepted though Cap is reached.
func (in *Inbox[M]) post(m M, q pending, forced bool) error {
	in.guard.Lock()
	switch {
	case in.closed:
		in.guard.Unlock()
		return ErrEnded
	case in.room != nil && !forced && in.room.used >= in.opts.Cap:
		in.guard.Unlock()
		return ErrFull
	}
	moved, start := in.acceptLocked(m, q)
	in.guard.Unlock()
	moved.drop()
	if start {
		in.self.launch()
	}
	return nil
}

// acceptLocked hands m to a waiting RecvOp that matches, or appends it. moved is where q was until now, and start says that the
// caller owes a task.
func (in *Inbox[M]) acceptLocked(m M, q pending) (moved *entry, start bool) {
	if q != nil {
		moved = in.adoptLocked(q)
	}
	if len(in.ops) > 0 && in.offerLocked(m) {
		return moved, false
	}
	in.in.push(m)
	if in.room != nil {
		in.room.used++
	}
	return moved, in.wakeLocked()
}

// received takes the message at p out of the mailbox, for good.
func (in *Inbox[M]) received(p place[M]) {
	if s := in.kept.remove(p); s != nil {
		in.spare = s
	}
	if in.room != nil {
		in.guard.Lock()
		in.leaveRoomLocked()
		in.guard.Unlock()
	}
}

// An arrival is a wait for something new, as a Source. Its methods run in the owner's task.
type arrival[M any] struct {
	*Inbox[M]
	t *timer // or nil
}

func (a arrival[M]) Guard() *suspend.Guard { return &a.guard }

// Try fetches new messages. An error ends the wait.
func (a arrival[M]) Try() (none struct{}, ok bool, err error) {
	ok, err = a.newsLocked(a.t)
	return none, ok, err
}

func (a arrival[M]) Enqueue(r suspend.Resumer[struct{}]) {
	a.restLocked()
	a.state, a.waiter = receiving, r
}

func (a arrival[M]) Remove(suspend.Resumer[struct{}]) {
	if a.state == receiving {
		a.state = running
	}
	a.waiter = suspend.Resumer[struct{}]{}
}

// newsLocked reports whether there is something new for the owner, and fetches it. A message comes before a timeout.
func (in *Inbox[M]) newsLocked(t *timer) (ok bool, err error) {
	switch {
	case in.killed.Load():
		return true, cancelctx.Reason(context.Canceled, in.err)
	case in.in.count > 0:
		in.fetchLocked()
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

// fetchLocked takes over the messages that senders have appended, and gives them an empty segment for it.
func (in *Inbox[M]) fetchLocked() {
	in.kept.fetch(&in.in)
	if in.in.first == nil && in.spare != nil {
		in.in.link(in.spare)
		in.spare = nil
	}
}

// restLocked prepares for a wait: a segment to append to, if there is a small one, and no large one.
func (in *Inbox[M]) restLocked() {
	if in.in.first == nil && in.spare != nil && cap(in.spare.slots) <= idleSegment {
		in.in.link(in.spare)
	}
	in.spare = nil
	if s := in.in.first; s != nil && cap(s.slots) > idleSegment {
		in.in = mail[M]{} // it is empty
	}
}
