package actor

import (
	"context"
	"slices"

	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/suspend"
)

// RecvOp returns an Op that receives the first message for which match returns true, or the first message if match is nil. As a case of
// a Select, the Op removes a message only if it wins.
//
// match is called under locks, also by senders. It must be quick, and must not call anything in this module. A panic in this function
// is raised again in the task that performs the Op. A runtime.Goexit in it, as in a failed test, ends the calling goroutine, which may
// be a sender.
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

func (o *recv[M]) Guard() *suspend.Guard { return &o.in.life.guard }

// Try runs in the owner's task, like all code that touches the owner's mail.
func (o *recv[M]) Try() (m M, ok bool, err error) {
	in := o.in
	if in.life.killed.Load() {
		return m, true, cancelctx.Reason(context.Canceled, in.life.err)
	}
	in.fetchLocked()
	for p, ok := in.mail.after(place[M]{}); ok; p, ok = in.mail.after(p) {
		v := p.message()
		yes, err := in.matchesLocked(o.match, v)
		if err != nil {
			return m, true, err
		}
		if yes {
			counted := !p.seg.notes[p.at].uncounted
			in.mail.remove(p)
			if counted {
				in.freeRoomLocked()
			}
			return v, true, nil
		}
	}
	switch {
	case in.life.state == ended:
		return m, true, ErrEnded
	case in.life.closed:
		return m, true, ErrStopped
	}
	return m, false, nil
}

func (o *recv[M]) Enqueue(r suspend.Resumer[M]) {
	o.in.restLocked()
	if o.in.ops == nil {
		o.in.ops = new(ops[M])
	}
	o.in.ops.offers = append(o.in.ops.offers, offer[M]{r, o.match})
}

func (o *recv[M]) Remove(r suspend.Resumer[M]) {
	o.in.ops.offers = slices.DeleteFunc(o.in.ops.offers, func(x offer[M]) bool { return x.r == r })
}

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
