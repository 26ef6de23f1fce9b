package actor

import (
	"context"
	"slices"

	"github.com/braidgo/braid/internal/again"
	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/suspend"
)

// An offer is a waiting RecvOp.
type offer[M any] struct {
	r       suspend.Resumer[M]
	selects bool // it has a match
}

// An ops holds the waiting Ops of a mailbox and, if there is a Cap, the number of its messages. Most mailboxes have no ops.
type ops[M any] struct {
	offers  []offer[M]
	cap     int // zero means no bound; then the next field has no meaning
	used    int // number of messages that count towards cap
	senders suspend.Queue[struct{}, sending[M]]
}

type sending[M any] struct {
	m M
	q pending
}

// full reports whether the mailbox is full. x may be nil.
func (x *ops[M]) full() bool { return x != nil && x.cap > 0 && x.used >= x.cap }

// RecvOp returns an Op that receives the first message for which match returns true, or the first message if match is nil. As a case of
// a Select, the Op removes a message only if it wins.
//
// match is called by the task that performs the Op, under no lock, and perhaps several times with the same message. With suspend.Then
// it is also called on the executor, and until the continuation runs, the owner must not use the inbox. match must not suspend, and must
// not use the inbox. If it panics or calls runtime.Goexit, the Op receives nothing, and the panic or exit continues.
func (in *Inbox[M]) RecvOp(match func(M) bool) suspend.Op[M] {
	if match == nil {
		return suspend.OpOf[M](&recv[M]{in})
	}
	return suspend.OpOf[M](&selective[M]{recv[M]{in}, match})
}

// A recv is a RecvOp without a match.
type recv[M any] struct{ in *Inbox[M] }

func (o *recv[M]) Guard() *suspend.Guard { return &o.in.life.guard }

// Try runs in the owner's task, like all code that touches the owner's mail.
func (o *recv[M]) Try() (m M, ok bool, err error) {
	in := o.in
	if in.life.killed.Load() {
		return m, true, cancelctx.Reason(context.Canceled, in.life.err)
	}
	in.fetchLocked()
	if p, ok := in.mail.after(place[M]{}); ok {
		return in.takeLocked(p), true, nil
	}
	err = in.life.closedLocked()
	return m, err != nil, err
}

func (o *recv[M]) Enqueue(r suspend.Resumer[M]) { o.enqueue(r, false) }

func (o *recv[M]) enqueue(r suspend.Resumer[M], selects bool) {
	o.in.restLocked()
	if o.in.ops == nil {
		o.in.ops = new(ops[M])
	}
	o.in.ops.offers = append(o.in.ops.offers, offer[M]{r, selects})
}

func (o *recv[M]) Remove(r suspend.Resumer[M]) {
	o.in.ops.offers = slices.DeleteFunc(o.in.ops.offers, func(x offer[M]) bool { return x.r == r })
}

// takeLocked removes and returns the message at p. With a Cap, it makes room for a waiting SendOp.
func (in *Inbox[M]) takeLocked(p place[M]) M {
	m, counted := p.message(), !p.seg.notes[p.at].uncounted
	in.mail.remove(p)
	if counted {
		in.freeRoomLocked()
	}
	return m
}

// closedLocked returns the error of a wait that finds no message, or nil if there may still be a message.
func (l *life) closedLocked() error {
	switch {
	case l.state == ended:
		return ErrEnded
	case l.closed:
		return ErrStopped
	}
	return nil
}

// A selective is a RecvOp with a match. As a Source it is never used, because suspend.OpOf calls only Anew.
type selective[M any] struct {
	recv[M]
	match func(M) bool
}

// Anew implements again.Maker.
func (o *selective[M]) Anew() suspend.Source[M] {
	return &selection[M]{recv: o.recv, match: o.match}
}

// A selection is one use of a selective, an again.Preparer. The function match is foreign code, so Prepare calls it, under no guard. A
// sender only appends its message, and makes the owner look again.
type selection[M any] struct {
	recv[M]
	match   func(M) bool
	refused place[M] // the last message for which match has returned false
	found   place[M] // the message for which match has returned true
}

func (o *selection[M]) Prepare() {
	in := o.in
	in.life.guard.Lock()
	in.fetchLocked()
	in.life.guard.Unlock()
	o.found = place[M]{}
	for p, ok := in.mail.after(o.refused); ok; p, ok = in.mail.after(p) {
		if o.match(p.message()) {
			o.found = p
			return
		}
		o.refused = p
	}
}

func (o *selection[M]) Try() (m M, ok bool, err error) {
	switch in := o.in; {
	case in.life.killed.Load():
		return m, true, cancelctx.Reason(context.Canceled, in.life.err)
	case o.found.seg != nil:
		return in.takeLocked(o.found), true, nil
	case in.arrived.count > 0: // since Prepare
		return m, true, again.Err
	}
	err = o.in.life.closedLocked()
	return m, err != nil, err
}

func (o *selection[M]) Enqueue(r suspend.Resumer[M]) { o.enqueue(r, true) }

func (o *selection[M]) Settle() { o.Drop() }

func (o *selection[M]) Drop() { o.refused, o.found = place[M]{}, place[M]{} }

// A send is a SendOp as a Source.
type send[M any] struct {
	in *Inbox[M]
	sending[M]
}

func (s *send[M]) Guard() *suspend.Guard { return &s.in.life.guard }

func (s *send[M]) Try() (none struct{}, ok bool, err error) {
	in := s.in
	switch {
	case in.life.closed:
		return none, true, ErrEnded
	case in.ops.full():
		return none, false, nil
	}
	if _, start := in.acceptLocked(s.m, s.q, false); start {
		in.life.launch() // a Select may hold its guards here, which a Spawner's Go allows
	}
	return none, true, nil
}

func (s *send[M]) Enqueue(r suspend.Resumer[struct{}]) { s.in.ops.senders.Push(r, s.sending) }

func (s *send[M]) Remove(r suspend.Resumer[struct{}]) { s.in.ops.senders.Remove(r) }

func (in *Inbox[M]) sendOp(m M, q pending) suspend.Op[struct{}] {
	if q == nil {
		return suspend.OpOf[struct{}](&send[M]{in, sending[M]{m, nil}})
	}
	before := q.call().home.Load()
	return suspend.Map(suspend.OpOf[struct{}](&send[M]{in, sending[M]{m, q}}), func(v struct{}, err error) (struct{}, error) {
		if err == nil {
			before.drop()
		}
		return v, err
	})
}

// offerLocked delivers m to the first RecvOp that takes any message and can be resumed. It reports whether there was one. A RecvOp whose
// Resume reports false was cancelled, and removes itself.
func (in *Inbox[M]) offerLocked(m M) bool {
	x := in.ops
	for i, o := range x.offers {
		if !o.selects && o.r.Resume(m, nil) {
			x.offers = slices.Delete(x.offers, i, i+1)
			return true
		}
	}
	return false
}

// lookAgainLocked makes each RecvOp with a match look at the mailbox again.
func (in *Inbox[M]) lookAgainLocked() {
	var none M
	in.ops.offers = slices.DeleteFunc(in.ops.offers, func(o offer[M]) bool {
		if o.selects {
			o.r.Resume(none, again.Err)
		}
		return o.selects
	})
}

// failLocked ends all waiting RecvOps with the given error, and all waiting SendOps with ErrEnded.
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

// freeRoomLocked decrements the count of messages. The SendOp that has waited longest takes the free place.
//
// Invariant: while a SendOp that can be resumed waits, the mailbox is full.
func (in *Inbox[M]) freeRoomLocked() {
	if in.ops == nil || in.ops.cap == 0 {
		return
	}
	if in.ops.used--; in.ops.full() {
		return
	}
	if x, ok := in.ops.senders.Resume(struct{}{}, nil); ok {
		in.acceptLocked(x.m, x.q, false) // the owner is running, so start is false; sendOp drops the previous home of q
	}
}
