package actor

import (
	"context"
	"slices"

	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/suspend"
)

// RecvOp is a receive as an Op: of the first message if match is nil, otherwise of the first that match accepts. As a case of a
// Select it takes a message exactly if it wins.
//
// match runs under locks, and on senders as well: it must be quick, and must not call anything of this module. A panic of it
// is raised in the task that performs the Op. A runtime.Goexit of it, as of a failed test, ends the caller, a sender perhaps.
func (in *Inbox[M]) RecvOp(match func(M) bool) suspend.Op[M] {
	return suspend.Map(suspend.OpOf[M](&recv[M]{in, match}), func(m M, err error) (M, error) {
		if p, ok := err.(*matchPanic); ok {
			panic(p.value)
		}
		return m, err
	})
}

type recv[M any] struct {
	in    *Inbox[M]
	match func(M) bool
}

// An offer is a RecvOp that waits.
type offer[M any] struct {
	r     suspend.Resumer[M]
	match func(M) bool
}

func (o *recv[M]) Guard() *suspend.Guard { return &o.in.guard }

// Try runs in the task of the owner, as all that touches kept.
func (o *recv[M]) Try() (m M, ok bool, err error) {
	in := o.in
	if in.killed.Load() {
		return m, true, cancelctx.Reason(context.Canceled, in.err)
	}
	in.kept.fetch(&in.in)
	for p, ok := in.kept.after(place[M]{}); ok; p, ok = in.kept.after(p) {
		v := p.message()
		yes, err := in.matchesLocked(o.match, v)
		if err != nil {
			return m, true, err
		}
		if yes {
			counted := !p.seg.notes[p.at].uncounted
			in.kept.remove(p)
			if counted {
				in.leaveRoomLocked()
			}
			return v, true, nil
		}
	}
	switch {
	case in.state == ended:
		return m, true, ErrEnded
	case in.closed:
		return m, true, ErrStopped
	}
	return m, false, nil
}

func (o *recv[M]) Enqueue(r suspend.Resumer[M]) {
	o.in.restLocked()
	if o.in.room == nil {
		o.in.room = new(room[M])
	}
	o.in.room.ops = append(o.in.room.ops, offer[M]{r, o.match})
}

func (o *recv[M]) Remove(r suspend.Resumer[M]) {
	o.in.room.ops = slices.DeleteFunc(o.in.room.ops, func(x offer[M]) bool { return x.r == r })
}

// offerLocked hands m to the first RecvOp that matches it and can be resumed. It reports whether there is one. A waiter
// that refuses is cancelled, and removes itself.
func (in *Inbox[M]) offerLocked(m M) bool {
	x := in.room
	for i := 0; i < len(x.ops); i++ {
		o := x.ops[i]
		yes, err := in.matchesLocked(o.match, m)
		var none M
		switch {
		case err != nil && o.r.Resume(none, err):
			x.ops = slices.Delete(x.ops, i, i+1)
			i--
		case err == nil && yes && o.r.Resume(m, nil):
			x.ops = slices.Delete(x.ops, i, i+1)
			return true
		}
	}
	return false
}

// failLocked ends all RecvOps and SendOps that wait.
func (in *Inbox[M]) failLocked(receives error) {
	if in.room == nil {
		return
	}
	var none M
	for _, o := range in.room.ops {
		o.r.Resume(none, receives)
	}
	clear(in.room.ops)
	in.room.ops = in.room.ops[:0]
	in.room.senders.ResumeAll(struct{}{}, ErrEnded)
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

// A room is for the Ops that wait at a mailbox. It counts the messages of one with a Cap. Most mailboxes have none.
type room[M any] struct {
	ops     []offer[M]
	cap     int // 0: no bound, and nothing is counted
	used    int // messages accepted and not received; those handed over at once do not count
	senders suspend.Queue[struct{}, sending[M]]
}

type sending[M any] struct {
	m M
	q pending
}

// full reports whether a message has to wait. x may be nil.
func (x *room[M]) full() bool { return x != nil && x.cap > 0 && x.used >= x.cap }

func (in *Inbox[M]) leaveRoom() {
	in.guard.Lock()
	in.leaveRoomLocked()
	in.guard.Unlock()
}

// leaveRoomLocked says that a message has left the mailbox. The SendOp that has waited longest takes its room.
//
// Invariant: a SendOp that waits and can be resumed waits since there is no room.
func (in *Inbox[M]) leaveRoomLocked() {
	if in.room == nil || in.room.cap == 0 {
		return
	}
	if in.room.used--; in.room.full() {
		return
	}
	if x, ok := in.room.senders.Resume(struct{}{}, nil); ok {
		in.acceptLocked(x.m, x.q, false) // the owner is running; SendOp itself drops where q was
	}
}

// A send is a SendOp as a Source.
type send[M any] struct {
	in *Inbox[M]
	sending[M]
}

func (s *send[M]) Guard() *suspend.Guard { return &s.in.guard }

func (s *send[M]) Try() (none struct{}, ok bool, err error) {
	in := s.in
	switch {
	case in.closed:
		return none, true, ErrEnded
	case in.room.full():
		return none, false, nil
	}
	if _, start := in.acceptLocked(s.m, s.q, false); start {
		in.self.launch() // under the guards of a Select: a Spawner's Go allows it
	}
	return none, true, nil
}

func (s *send[M]) Enqueue(r suspend.Resumer[struct{}]) { s.in.room.senders.Push(r, s.sending) }
func (s *send[M]) Remove(r suspend.Resumer[struct{}])  { s.in.room.senders.Remove(r) }

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
